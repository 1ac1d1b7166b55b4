"""F21, F22, F23: every request is counted once, is sent no more often than asked for, and none is answered from a cache."""

import contextlib

import pytest
from agents import GOVERNED, Routed, run, served

from ag2_parallel import ParallelTask, RetryPolicy
from ag2_parallel.testing import Fault, ModelServer, Reply

pytestmark = pytest.mark.usefixtures("no_threads_left")

QUICK = {"initial": 0.01, "maximum": 0.02}


@pytest.fixture(params=[{}, GOVERNED], ids=["no limits", "limits"])
def limits(request):
    """Options of a run: without limits, and with limits of every sort."""
    return request.param


class TestRetries:
    """F21."""

    FORMS = ("config", "live agent", "factory", "own retries of the SDK")

    def task(self, line, form, server):
        if form == "config":
            return ParallelTask("t", "x", line.agent_config(server))
        if form == "live agent":
            return ParallelTask("t", "x", agent=line.assistant(server))
        if form == "factory":
            return ParallelTask("t", "x", agent=lambda: line.assistant(server))
        return ParallelTask("t", "x", line.agent_config(server, entry={"max_retries": 7}))

    @pytest.mark.parametrize("form", FORMS)
    def test_one_owner_of_retries(self, line, form, limits):
        with ModelServer(Fault.status(429)) as server:
            results = run([self.task(line, form, server)], model_retry=RetryPolicy(3, **QUICK), **limits)
            assert server.ledger.count == 3
        result = results["t"]
        assert (result.attempts, result.usage.retried_calls) == (1, 2)
        assert (result.error.kind, result.error.status_code) == ("rate_limit", 429)

    @pytest.mark.parametrize("form", FORMS)
    def test_the_report_states_both_numbers(self, line, form, limits):
        with ModelServer(Fault.status(503)) as server:
            policies = {"model_retry": RetryPolicy(3, **QUICK), "retry": RetryPolicy(2, **QUICK)}
            result = run([self.task(line, form, server)], **policies, **limits)["t"]
            assert (result.attempts, result.usage.retried_calls) == (2, 4)
            assert server.ledger.count == result.attempts + result.usage.retried_calls

    @pytest.mark.parametrize(
        ("fault", "kind"),
        [
            (Fault.status(400), "configuration"),
            (Fault.status(401), "authentication"),
            (Fault.status(403), "authentication"),
            (Fault.status(404), "configuration"),
            (Fault.status(400, code="context_length_exceeded"), "context_length"),
            (Fault.status(429, code="insufficient_quota"), "quota"),
        ],
    )
    def test_what_cannot_go_away_is_asked_once(self, line, fault, kind, limits):
        with ModelServer(fault) as server:
            result = run([self.task(line, "factory", server)], model_retry=RetryPolicy(5, **QUICK), **limits)["t"]
            assert server.ledger.count == 1
        assert (result.error.kind, result.attempts) == (kind, 1)

    def test_the_deadline_caps_too(self, line, limits):
        with ModelServer(Fault.status(429, retry_after=30)) as server:
            result = run([self.task(line, "factory", server)], timeout=20, **limits)["t"]
            assert server.ledger.count == 1
        assert result.status == "failed"
        assert result.duration < 10
        assert "30 s" in f"{result.error.message} {result.error.retry_after} s"


class TestCounting:
    """F22."""

    @pytest.mark.parametrize("form", ["shared client", "own clients", "template"])
    def test_usage_is_the_servers_own(self, line, form, limits):
        with served() as server:
            template = line.sharing_a_client(server)
            agent = {
                "shared client": lambda ctx: line.sharing_a_client(Routed(ctx, server)),
                "own clients": lambda: line.team(server, 3),
                "template": template,
            }[form]
            for _ in range(2):
                before = server.ledger.tokens_sent
                tasks = [
                    ParallelTask(f"t{i}", f"<{i}>", agent=agent, max_turns=4)
                    for i in range(20 if form != "own clients" else 6)
                ]
                results = run(tasks, max_workers=10, **limits)
                assert results.ok
                total = sum(result.usage.total_tokens for result in results.values())
                assert total == results.usage.total_tokens == server.ledger.tokens_sent - before > 0
                assert {result.usage.calls for result in results.values()} == {3}
                assert results.usage.cost is None, "the price of no model here is known"

    def test_spent_tokens_count_whatever_became_of_the_task(self, line, limits):
        """Failures, time limits and retries of both sorts."""

        def reply(request):
            said = len(request.messages)
            if "<hang>" in str(request.messages) and said > 2:
                return Fault.hang()
            if "<fail>" in str(request.messages) and said > 2:
                return Fault.status(418)
            if "<busy>" in str(request.messages) and request.number % 2:
                return Fault.status(500)
            return Reply("and on", usage=(100 + said, 7))

        with ModelServer(reply) as server:
            tasks = [
                ParallelTask(
                    f"{kind}{i}", f"<{kind}>", agent=lambda ctx: line.sharing_a_client(Routed(ctx, server)), max_turns=4
                )
                for kind in ("fine", "hang", "fail", "busy")
                for i in range(5)
            ]
            results = run(
                tasks,
                max_workers=10,
                timeout=3,
                retry=RetryPolicy(2, **QUICK),
                model_retry=RetryPolicy(9, **QUICK),
                **limits,
            )
            ledger = server.ledger
            assert ledger.wait_for(lambda _: ledger.in_flight == 0)
            total = sum(result.usage.total_tokens for result in results.values())
            assert total == results.usage.total_tokens == ledger.tokens_sent
            assert results.usage.calls == ledger.answered
            assert results.usage.unreported_calls == ledger.cut == 5
            assert results.usage.retried_calls > 0
        for name, result in results.items():
            expected = "timed_out" if "hang" in name else "failed" if "fail" in name else "succeeded"
            assert (name, str(result.status)) == (name, expected)
            assert result.usage.total_tokens > 0
        assert {results[f"fail{i}"].attempts for i in range(5)} == {2}

    def test_known_prices_and_unknown_numbers(self, classic):
        def config(server, **entry):
            return classic.agent_config(server, entry=entry)

        with ModelServer(Reply("x", usage=(1000, 500))) as server, ModelServer("x", include_usage=False) as silent:
            results = run(
                [
                    ParallelTask("priced", "x", config(server, price=[0.002, 0.004])),
                    ParallelTask("unpriced", "x", config(server)),
                    ParallelTask("silent", "x", config(silent, price=[0.002, 0.004])),
                ]
            )
        assert results["priced"].usage.cost == pytest.approx(0.004)
        assert results["unpriced"].usage.cost is None
        assert results["silent"].usage.unreported_calls == 1
        assert results["silent"].usage.total_tokens == 0
        assert results["silent"].usage.estimated_tokens > 0
        assert results.usage.cost is None
        assert results.usage.total_tokens == server.ledger.tokens_sent


class TestCache:
    """F23."""

    @pytest.mark.parametrize("form", ["config", "factory", "live agent"])
    def test_the_same_prompt_is_asked_every_time(self, line, form, tmp_path):
        with contextlib.chdir(tmp_path), ModelServer(lambda request: f"joke {request.number}") as server:
            live = line.assistant(server)
            made = {
                "config": {"agent_config": line.agent_config(server, entry={"temperature": 0.9})},
                "factory": {"agent": line.ok(server)},
                "live agent": {"agent": live},
            }[form]
            for run_number in (1, 2):
                results = run([ParallelTask(f"s{i}", "Tell a joke", **made) for i in range(10)], max_workers=10)
                assert len({result.output for result in results.values()}) == 10
                assert server.ledger.count == 10 * run_number
            assert list(tmp_path.iterdir()) == []


def test_tools_and_their_rounds_are_counted(line, limits):
    """F22."""

    def tool() -> str:
        return "result"

    with served() as server:
        results = run(
            [ParallelTask(f"t{i}", "call", agent=line.agent_calling(server, tool)) for i in range(5)], **limits
        )
        assert results.usage.total_tokens == server.ledger.tokens_sent
        assert results.usage.calls == server.ledger.count == 10

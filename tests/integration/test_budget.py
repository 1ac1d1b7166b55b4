"""P6: budgets on cost and tokens, as a user sees them."""

import itertools
import threading

import openai
import pytest
from autogen import ConversableAgent, GroupChat
from autogen.agentchat.group.patterns import RoundRobinPattern
from test_other_providers import agent as agent_with
from test_other_providers import client_that

from ag2_parallel import Budget, ConfigurationError, ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import Fault, ModelServer, RecordingObserver, Reply

pytestmark = pytest.mark.usefixtures("no_threads_left")

TEN = Reply("ten", usage=(6, 4))
PRICE = [0.5, 1.0]
"""US dollars for 1,000 tokens: an answer of `TEN` costs 0.007."""


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "model_retry": 1, **options})


def chats(count, **fields):
    return [ParallelTask(f"t{n}", "hello", **fields) for n in range(count)]


def client_of(ctx, server, **entry):
    """The SDK's own client, through the task's gate."""
    routed = ctx.llm_config(server.llm_config(**entry)).config_list[0]
    return openai.OpenAI(base_url=server.base_url, api_key="sk-test", max_retries=0, http_client=routed.http_client)


def ask(client):
    return client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "hello"}])


def asking_for_ever(server, **entry):
    def run(ctx):
        client = client_of(ctx, server, **entry)
        for count in itertools.count():
            ask(client)
            ctx.report(f"answer {count}")

    return run


def agent(server, name="a", **entry):
    return ConversableAgent(name, llm_config=server.llm_config(**entry), human_input_mode="NEVER")


class TestOfTheRun:
    @pytest.mark.parametrize(("budget", "most"), [(Budget(max_tokens=200), 20), (Budget(max_cost=0.14), 20)])
    def test_past_it_nothing_new_starts_and_the_overshoot_is_what_was_in_flight(self, budget, most):
        observer = RecordingObserver()
        with ModelServer(TEN, latency=0.01) as server:
            config = server.llm_config(price=PRICE)
            results = runner(llm_config=config, max_workers=8, budget=budget, observers=[observer]).run(chats(100))
        assert results.stop_reason == "budget"
        assert most <= server.ledger.count <= most + 7
        assert len(results.succeeded) + len(results.failed) + len(results.skipped) == 100
        assert results.usage.total_tokens == server.ledger.count * 10
        late = results["t99"]
        assert (late.status, late.stop_reason, late.error.kind) == ("skipped", "budget", "stopped")
        assert "max_" in late.error.message
        assert [e.reason for e in observer.events if e.type == "RunStopping"] == ["budget"]
        assert any("nothing new starts" in e.message for e in observer.events if e.type == "RunWarning")

    def test_running_tasks_keep_what_they_had_and_end_at_their_next_call(self):
        with ModelServer(TEN, latency=0.01) as server:
            tasks = [ParallelTask(f"loop{n}", run=asking_for_ever(server)) for n in range(8)]
            results = runner(max_workers=8, budget=Budget(max_tokens=500)).run([*tasks, *tasks_without_calls(3)])
        assert results.stop_reason == "budget"
        for result in results.failed:
            assert (result.stop_reason, result.error.kind, result.attempts) == ("budget", "budget", 1)
            assert result.error.retryable is False
            assert "max_tokens=500" in result.error.message
            assert result.usage.total_tokens > 0
            assert result.ended == "unwound"
        assert len(results.failed) == 8
        assert 500 <= results.usage.total_tokens <= 500 + 7 * 10

    def test_a_run_that_ends_within_it_says_nothing(self):
        with ModelServer(TEN) as server:
            results = runner(llm_config=server.llm_config(), budget=Budget(max_tokens=40), max_workers=2).run(chats(4))
        assert results.ok
        assert results.stop_reason is None
        assert results.usage.total_tokens == 40

    def test_an_endless_source_ends(self):
        with ModelServer(TEN) as server:
            tasks = (ParallelTask(f"t{n}", "hello") for n in itertools.count())
            results = runner(llm_config=server.llm_config(), budget=Budget(max_tokens=50), max_workers=2).run(tasks)
        assert results.stop_reason == "budget"
        assert len(results.succeeded) in {5, 6}

    def test_a_streamed_run_too(self):
        with ModelServer(TEN) as server:
            stream = runner(llm_config=server.llm_config(), budget=Budget(max_tokens=30), max_workers=1).stream(
                chats(6)
            )
            assert [result.status for result in stream].count("succeeded") == 3

    def test_fail_fast_stops_for_a_tasks_budget_and_not_for_the_runs(self):
        with ModelServer(TEN) as server:
            options = {"llm_config": server.llm_config(), "handle_errors": "fail_fast", "max_workers": 1}
            assert runner(budget=Budget(max_tokens=20), **options).run(chats(5)).stop_reason == "budget"

    def test_each_run_of_a_runner_has_the_whole_budget(self):
        with ModelServer(TEN) as server, runner(llm_config=server.llm_config(), budget=Budget(max_tokens=25)) as kept:
            assert kept.run(chats(2)).ok
            assert kept.run(chats(2)).ok

    def test_retries_of_a_call_count(self):
        """Requests that were sent and broke are estimated, so a server that never answers cannot cost without end."""
        with ModelServer(Fault.half_stream("x" * 4000)) as server:
            task = ParallelTask("t", "word " * 400)
            budget = Budget(max_task_tokens=1200)
            results = runner(llm_config=server.llm_config(), model_retry=20, budget=budget, timeout=30).run([task])
        assert results["t"].error.kind == "budget"
        assert server.ledger.count < 10


def tasks_without_calls(count):
    release = threading.Event()
    release.set()
    return [ParallelTask(f"plain{n}", run=lambda ctx: release.wait(5)) for n in range(count)]


class TestOfATask:
    def test_it_ends_that_task_alone(self):
        with ModelServer(TEN) as server:
            tasks = [ParallelTask("loop", run=asking_for_ever(server)), *chats(5)]
            results = runner(llm_config=server.llm_config(), budget=Budget(max_task_tokens=30)).run(tasks)
        assert results.stop_reason is None
        assert len(results.succeeded) == 5
        loop = results["loop"]
        assert (loop.status, loop.stop_reason, loop.error.kind) == ("failed", "budget", "budget")
        assert loop.usage.total_tokens == 30

    def test_attempts_share_it(self):
        def fails(ctx):
            ask(client_of(ctx, server))
            raise ValueError("again")

        with ModelServer(TEN) as server:
            task = ParallelTask("t", run=fails, retry=9)
            result = runner(budget=Budget(max_task_tokens=20), retry=9).run([task])["t"]
        assert (result.error.kind, result.attempts, server.ledger.count) == ("budget", 3, 2)
        assert [record.error.kind for record in result.attempt_log] == ["agent", "agent", "budget"]

    @pytest.mark.parametrize("form", ["pair", "group", "pattern", "nested"])
    def test_teams_and_nested_chats_are_counted_whole_and_keep_their_transcript(self, form):
        def make(ctx):
            one, two = agent(server, "one"), agent(server, "two")
            if form == "pair":
                return one, two
            if form == "group":
                return GroupChat([one, two], speaker_selection_method="round_robin", max_round=50)
            if form == "pattern":
                return RoundRobinPattern(one, [one, two])
            outer = agent(server, "outer")
            outer.register_nested_chats([{"recipient": one, "message": "go", "max_turns": 50}], trigger=two)
            return two, outer

        with ModelServer(TEN) as server:
            task = ParallelTask("team", "discuss", agent=make, max_turns=50)
            result = runner(budget=Budget(max_task_tokens=60)).run([task])["team"]
        assert (result.status, result.stop_reason) == ("failed", "budget")
        assert result.usage.total_tokens == 60
        assert server.ledger.count == 6
        assert result.chat_history

    def test_code_that_swallows_the_stop_signal_cannot_go_on(self):
        def stubborn(ctx):
            client = client_of(ctx, server)
            while True:
                try:
                    ask(client)
                except BaseException:
                    if ctx.remaining() == 0:
                        raise

        with ModelServer(TEN) as server:
            task = ParallelTask("stubborn", run=stubborn, timeout=1.5)
            result = runner(budget=Budget(max_task_tokens=30), grace=0.2).run([task])["stubborn"]
        assert (result.status, result.stop_reason) == ("failed", "budget")
        assert server.ledger.count == 3

    def test_a_fallback_list_is_not_started(self):
        with ModelServer(TEN) as server, ModelServer("never asked") as other:
            entries = [*server.llm_config()["config_list"], *other.llm_config()["config_list"]]
            one = ConversableAgent("one", llm_config={"config_list": entries}, human_input_mode="NEVER")
            two = ConversableAgent("two", llm_config={"config_list": entries}, human_input_mode="NEVER")
            task = ParallelTask("t", "talk", agent=(one, two), max_turns=20)
            result = runner(budget=Budget(max_task_tokens=40)).run([task])["t"]
        assert result.error.kind == "budget"
        assert (server.ledger.count, other.ledger.count) == (4, 0)


class TestUnknownPrices:
    def test_are_refused_by_name_before_anything_starts(self):
        with ModelServer(TEN) as server:
            own = {"llm_config": server.llm_config(model="house-13")}
            tasks = [
                ParallelTask("config", "x", agent_config=own),
                ParallelTask("template", "x", agent=agent(server, "a", model="house-14")),
                ParallelTask("runner", "x"),
                ParallelTask("fine", "x", agent_config={"llm_config": server.llm_config(price=PRICE)}),
            ]
            with pytest.raises(ConfigurationError) as caught:
                runner(llm_config=server.llm_config(), budget=Budget(max_cost=1)).run(tasks)
        assert [problem.partition(":")[0] for problem in caught.value.problems] == [
            'task "config"', 'task "template"', 'task "runner"'
        ]  # fmt: skip
        assert all("price=" in problem for problem in caught.value.problems)
        assert "house-13" in str(caught.value)
        assert "house-14" in str(caught.value)
        assert server.ledger.count == 0

    @pytest.mark.parametrize("price", [[-1, 1], [float("nan"), 1], [1, float("inf")]])
    def test_a_price_that_would_never_add_up_is_none(self, price):
        with ModelServer(TEN) as server:
            with pytest.raises(ConfigurationError, match="price of model"):
                runner(llm_config=server.llm_config(price=price), budget=Budget(max_cost=1)).run(
                    [ParallelTask("t", "x")]
                )
            assert runner(llm_config=server.llm_config(price=price)).run([ParallelTask("t", "x")]).usage.cost is None

    def test_or_at_the_first_call_where_no_configuration_names_them(self):
        with ModelServer(TEN) as server:
            results = runner(budget=Budget(max_task_cost=1)).run(
                [
                    ParallelTask("function", run=asking_for_ever(server)),
                    ParallelTask("factory", "x", agent=lambda ctx: agent(server)),
                ]
            )
        for result in results.values():
            assert (result.status, result.stop_reason, result.error.kind) == ("failed", "error", "configuration")
            assert '"scripted"' in result.error.message
            assert "price=" in result.error.message
        assert server.ledger.count == 0

    def test_known_ones_need_no_price(self):
        with ModelServer(TEN) as server:
            config = server.llm_config(model="gpt-4o-mini")
            results = runner(llm_config=config, budget=Budget(max_cost=1)).run(chats(2))
        assert results.ok
        assert results.usage.cost == pytest.approx(2 * (6 * 0.15 + 4 * 0.6) / 1e6)

    def test_a_bad_row_of_a_source_fails_alone(self):
        with ModelServer(TEN) as server:
            bad = ParallelTask("bad", "x", agent_config={"llm_config": server.llm_config()})
            good = ParallelTask("good", "x", agent_config={"llm_config": server.llm_config(price=PRICE)})
            results = runner(budget=Budget(max_cost=1)).run(iter([bad, good]))
        assert results["bad"].error.kind == "configuration"
        assert results["good"].ok


class TestOfOtherProviders:
    def test_clients_that_send_by_themselves_are_held_to_it(self):
        def make():
            return agent_with(counted, "a"), agent_with(counted, "b")

        counted = client_that(lambda params: "more")
        task = ParallelTask("t", "talk", agent=make, max_turns=50)
        result = runner(budget=Budget(max_task_tokens=21)).run([task])["t"]
        assert (result.status, result.stop_reason, result.error.kind) == ("failed", "budget", "budget")
        assert (result.usage.calls, result.usage.total_tokens) == (3, 21)
        result = runner(budget=Budget(max_cost=0.014)).run([task])["t"]
        assert (result.stop_reason, result.usage.calls) == ("budget", 2)

"""What every line of AG2 has to do for the runner, whichever is installed: the contract of `ports.Framework`."""

import asyncio
import contextvars
import gc
import threading
import time
import weakref

import pydantic
import pytest
from agents import Routed, by_prompt, run, runner, served, statuses

from ag2_parallel import ConfigurationError, ParallelTask
from ag2_parallel.events import AgentEvent
from ag2_parallel.testing import Fault, ModelServer, RecordingObserver, Reply, ToolCall

pytestmark = pytest.mark.usefixtures("no_threads_left")


class Diagnosis(pydantic.BaseModel):
    name: str
    sure: bool


FORMS = {
    "agent_config": lambda line, server: {"agent_config": line.agent_config(server)},
    "template": lambda line, server: {"agent": line.assistant(server)},
    "factory": lambda line, server: {"agent": line.ok(server)},
    "async factory": lambda line, server: {"agent": async_factory(line, server)},
    "plain factory": lambda line, server: {"agent": lambda: line.assistant(server)},
}


def async_factory(line, server):
    async def make(ctx):
        await asyncio.sleep(0)
        return line.assistant(Routed(ctx, server))

    return make


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_agent_answers(line, form):
    with served() as server:
        results = run([ParallelTask(f"t{i}", f"hello {i}", **FORMS[form](line, server)) for i in range(3)])
        assert results.ok, results.errors
        for i, result in enumerate(results.values()):
            assert (result.output, result.summary, result.stop_reason) == (f"echo: hello {i}",) * 2 + ("answered",)
            assert [(m["role"], m["content"]) for m in result.chat_history] == [
                ("user", f"hello {i}"),
                ("assistant", f"echo: hello {i}"),
            ] or [m["content"] for m in result.chat_history] == [f"hello {i}", f"echo: hello {i}"]
            assert result.last_speaker == result.chat_history[-1]["name"]
            assert result.usage.calls == 1
            assert result.usage.by_model.keys() == {"scripted"}
        assert results.usage.total_tokens == server.ledger.tokens_sent


def test_the_runners_model_answers_tasks_without_an_agent(line):
    with served() as server:
        assert run([ParallelTask("t", "hello")], llm_config=line.config(server))["t"].output == "echo: hello"


def test_a_function_of_the_context_may_ask_by_itself(line):
    with served() as server:
        results = run([ParallelTask("t", "hello", run=line.asks_by_itself(server))])
        assert results["t"].output == "echo: hello"
        assert results["t"].usage.calls == 1


@pytest.mark.parametrize("how", ["sync", "async"])
def test_tools_run_and_are_told_of(line, how):
    def look(text: str) -> str:
        """Looks."""
        return f"seen {text}"

    async def look_async(text: str) -> str:
        """Looks."""
        await asyncio.sleep(0)
        return f"seen {text}"

    tool = look if how == "sync" else look_async

    def reply(request):
        if any(message["role"] == "tool" for message in request.messages):
            return request.messages[-1]["content"]
        return Reply(tool_calls=[ToolCall(tool.__name__, {"text": "it"})])

    seen = RecordingObserver()
    with ModelServer(reply) as server:
        result = run([ParallelTask("t", "x", agent=line.agent_calling(server, tool))], observers=[seen])["t"]
    assert result.output == "seen it"
    assert [message["role"] for message in result.chat_history].count("tool") == 1
    assert result.usage.calls == 2
    assert seen.of(AgentEvent)


@pytest.mark.parametrize("place", ["tool", "agent"])
def test_context_variables_of_the_caller_are_there(line, place):
    tenant = contextvars.ContextVar("tenant", default="nobody")

    def who() -> str:
        return tenant.get()

    def work(server):
        tenant.set("acme")
        agent = line.agent_calling(server, who) if place == "tool" else line.replying(who)
        return run([ParallelTask("t", "call", agent=agent)])["t"].output

    with served() as server:
        assert contextvars.copy_context().run(work, server) == "acme"


class TestAnswers:
    RIGHT = '{"name": "flu", "sure": true}'

    @pytest.mark.parametrize("answer", [RIGHT, f"```json\n{RIGHT}\n```"])
    def test_an_answer_is_validated(self, line, answer):
        with ModelServer(answer) as server:
            result = run([ParallelTask("t", "x", agent=line.ok(server), output_type=Diagnosis)])["t"]
            assert server.ledger.requests[0].body["response_format"]["type"] == "json_schema"
        assert result.output == Diagnosis(name="flu", sure=True)
        assert result.summary == answer

    def test_other_types_are_read_from_the_text(self, line):
        with ModelServer("[1, 2]") as server:
            task = ParallelTask("t", "x", agent=line.ok(server), output_type=list[int])
            assert run([task])["t"].output == [1, 2]
            assert "response_format" not in server.ledger.requests[0].body

    def test_it_is_asked_again_and_again_no_more_than_allowed(self, line):
        """F42."""
        with ModelServer(["no", "nor this", self.RIGHT]) as server:
            task = ParallelTask("t", "x", agent=line.ok(server), output_type=Diagnosis, output_retries=2)
            result = run([task])["t"]
            assert result.output == Diagnosis(name="flu", sure=True)
            assert server.ledger.count == 3
            assert "Diagnosis" in server.ledger.requests[1].text
        with ModelServer(lambda _request: "no") as server:
            task = ParallelTask("t", "x", agent=line.ok(server), output_type=Diagnosis, output_retries=2)
            result = run([task])["t"]
            assert server.ledger.count == 3
        assert (result.status, result.error.kind) == ("failed", "invalid_answer")

    def test_nothing_is_no_answer(self, line):
        with ModelServer("") as server:
            result = run([ParallelTask("t", "x", agent=line.ok(server))])["t"]
        assert (result.status, result.error.kind) == ("failed", "invalid_answer")

    def test_a_reflection_is_the_summary(self, line):
        def reply(request):
            return "in short" if "Sum it up" in str(request.messages) else "a long answer"

        with ModelServer(reply) as server:
            task = ParallelTask(
                "t", "x", agent=line.assistant(server), max_turns=1,
                summary_method="reflection_with_llm", summary_args={"summary_prompt": "Sum it up"},
            )  # fmt: skip
            result = run([task])["t"]
        assert result.output == result.summary == "in short"

    def test_no_summary_where_none_is_wanted(self, line):
        with served() as server:
            result = run([ParallelTask("t", "x", agent=line.ok(server), summary_method=None)])["t"]
        assert (result.status, result.summary, result.output) == ("succeeded", None, None)


class TestTurns:
    def test_a_lone_agent_stops_after_its_turns(self, line):
        def reply(_request):
            return Reply("calling", tool_calls=[ToolCall("again")])

        def again() -> str:
            return "once more"

        with ModelServer(reply) as server:
            result = run([ParallelTask("t", "x", agent=line.agent_calling(server, again), max_turns=3)])["t"]
            assert server.ledger.count == 3
        assert (result.status, result.stop_reason, result.output) == ("succeeded", "max_turns", "calling")


class TestContext:
    def test_values_reach_the_agents_and_come_back(self, line):
        given = {"patient": {"name": "Ada"}, "seen": []}
        with served() as server:
            tasks = [ParallelTask(f"t{i}", "call", agent=line.with_variables(server), context=given) for i in range(4)]
            results = run(tasks, max_workers=4)
        assert results.ok, results.errors
        for result in results.values():
            assert result.output == "Ada"
            assert result.context["visited"] == "yes"
            assert result.context["seen"] == ["here"]
        assert given == {"patient": {"name": "Ada"}, "seen": []}


class TestStops:
    def test_a_hanging_model_is_left_and_the_transcript_kept(self, line):
        with served() as server:
            tasks = [ParallelTask(f"t{i}", "hang", agent=line.ok(server)) for i in range(4)]
            results = run(tasks, timeout=0.4, max_workers=4)
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
        assert statuses(results) == ["timed_out"] * 4
        for result in results.values():
            assert (result.ended, result.stop_reason) == ("cut", "deadline")
            assert result.chat_history[0]["content"] == "hang"
            assert result.usage.unreported_calls == 1

    @pytest.mark.parametrize("busy", ["spins", "sleeps"])
    def test_a_blocking_tool_harms_its_own_task_alone(self, line, busy):
        release = threading.Event()

        def blocking() -> str:
            while busy == "spins":
                pass
            release.wait(20)
            return "late"

        with served() as server:
            tasks = [
                ParallelTask("blocked", "call", agent=line.agent_calling(server, blocking), timeout=0.4),
                *[ParallelTask(f"t{i}", "hello", agent=line.ok(server)) for i in range(3)],
            ]
            results = run(tasks, max_workers=2, grace=0.3)
            release.set()
        assert statuses(results) == ["timed_out", *["succeeded"] * 3]
        if busy == "sleeps":
            assert results["blocked"].ended == "abandoned"
            assert results.metrics["abandoned"] == 1
        else:  # interrupted; on a busy machine it may be given up before that is seen
            assert results["blocked"].ended in {"cut", "unwound", "abandoned"}

    def test_an_async_tool_is_cancelled(self, line):
        ended = threading.Event()

        async def waiting() -> str:
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
            return "late"

        with served() as server:
            task = ParallelTask("t", "call", agent=line.agent_calling(server, waiting), timeout=0.4)
            result = run([task])["t"]
        assert ended.is_set()
        assert (result.status, result.ended) == ("timed_out", "unwound")

    def test_a_tool_may_check_for_itself(self, line):
        def make(ctx):
            def polls() -> str:
                while True:
                    ctx.check()
                    time.sleep(0.01)

            return line.agent_calling(server, polls)(ctx)

        with served() as server:
            result = run([ParallelTask("t", "call", agent=make)], timeout=0.4)["t"]
        assert (result.status, result.ended) == ("timed_out", "unwound")


class TestFailures:
    @pytest.mark.parametrize(
        ("fault", "kind"),
        [
            (Fault.status(401), "authentication"),
            (Fault.status(429), "rate_limit"),
            (Fault.status(500), "provider"),
            (Fault.status(400, code="context_length_exceeded"), "context_length"),
        ],
    )
    def test_errors_of_a_model_have_their_kind(self, line, fault, kind):
        with ModelServer(fault) as server:
            result = run([ParallelTask("t", "x", agent=line.ok(server))], model_retry=1)["t"]
        assert (result.status, result.error.kind) == ("failed", kind)
        assert result.error.agent == "a"

    def test_errors_of_an_agents_code_are_the_tasks(self, line):
        results = run([ParallelTask("t", "x", agent=line.raises(LookupError("nothing there")))])
        assert (results["t"].error.type, results["t"].error.kind) == ("LookupError", "agent")
        assert "nothing there" in results["t"].error.message

    def test_a_class_in_place_of_an_agent_is_refused(self, line):
        with pytest.raises(ConfigurationError, match="is the class"):
            run([ParallelTask("t", "x", agent=type(line.with_tools(Nowhere())))])


class Nowhere:
    base_url = "http://127.0.0.1:9/v1"

    @staticmethod
    def llm_config(**entry):
        return {"config_list": [{"model": "m", "api_key": "none", "base_url": Nowhere.base_url, **entry}]}


def test_agents_of_finished_tasks_are_collectable(line):
    """F16: the half without a journal."""
    alive = []

    def make(ctx):
        agent = line.assistant(Routed(ctx, server))
        alive.append(weakref.ref(agent))
        return agent

    with served(by_prompt) as server, runner(max_workers=2) as kept:
        results = [result.output for result in kept.stream([ParallelTask(f"t{i}", "x", agent=make) for i in range(6)])]
        gc.collect()
        assert results == ["echo: x"] * 6
        assert sum(ref() is not None for ref in alive) <= 2  # what the two workers hold of their last task

"""What the trace of a task tells of a real run."""

import threading

import pytest
from autogen import AssistantAgent, UserProxyAgent

from ag2_parallel import ParallelAgentRunner, ParallelTask, RateLimit
from ag2_parallel.spans import UNFINISHED
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall


def kinds(result):
    return [span.kind for span in result.trace]


def lookup(record: str) -> str:
    """Looks a record up."""
    return f"found {record}"


@pytest.fixture
def server():
    with ModelServer() as it:
        yield it


def agent(server, **config):
    return {"llm_config": server.llm_config(), **config}


def test_calls_and_tools_stand_inside_their_attempt(server):
    server.reply = [Reply(tool_calls=[ToolCall("lookup", {"record": "a"})]), "done"]
    task = ParallelTask("t", "x", agent_config=agent(server, functions=[lookup]))
    result = ParallelAgentRunner(progress=False).run([task])["t"]
    assert kinds(result) == ["attempt", "call", "tool", "call"]
    attempt, call, tool, _ = result.trace
    assert (call.label, tool.label) == ("scripted", "lookup")
    assert call.detail.startswith("t, HTTP 200, ")
    assert all(attempt.start <= span.start <= span.end <= attempt.end for span in result.trace)
    assert attempt.end <= result.duration


def test_a_wait_stands_inside_its_call_and_says_for_what(server):
    server.fail_next(Fault.status(503))
    limited = ParallelAgentRunner(
        progress=False, rate_limits=RateLimit(requests=5, per=1), llm_config=server.llm_config()
    )
    result = limited.run([ParallelTask("t", "x")])["t"]
    call = next(span for span in result.trace if span.kind == "call")
    waits = [span for span in result.trace if span.kind == "wait"]
    assert waits[0].label == "the next try after HTTP 503"
    assert call.detail.endswith("tried 2 times")
    assert all(call.start <= wait.start <= wait.end <= call.end for wait in waits)


def test_a_call_that_is_cut_and_code_that_is_stopped_are_there(server):
    server.reply = Reply("late", latency=30)
    stop = threading.Event()
    tasks = [
        ParallelTask("asks", "x", agent_config=agent(server), timeout=1),
        ParallelTask("blocks", run=lambda ctx: stop.wait(30), timeout=0.3),
    ]
    results = ParallelAgentRunner(progress=False, grace=0.1).run(tasks)
    stop.set()
    assert kinds(results["asks"]) == ["attempt", "call"]
    assert "cut" in results["asks"].trace[1].detail
    assert results["blocks"].trace[0].detail == "timed_out, timeout"
    assert results["blocks"].trace[0].duration == pytest.approx(results["blocks"].duration, abs=0.05)


def test_a_tool_that_does_not_end_is_unfinished(server):
    stop = threading.Event()

    def hangs() -> str:
        """Hangs."""
        stop.wait(30)
        return "late"

    server.reply = [Reply(tool_calls=[ToolCall("hangs", {})]), "done"]
    task = ParallelTask("t", "x", agent_config=agent(server, functions=[hangs]), timeout=3)
    result = ParallelAgentRunner(progress=False, grace=0.1).run([task])["t"]
    stop.set()
    assert [(span.label, span.detail) for span in result.trace if span.kind == "tool"] == [("hangs", UNFINISHED)]


def test_attempts_and_the_time_between_them():
    def fails_once(ctx):
        return 1 / (ctx.attempt - 1)

    result = ParallelAgentRunner(progress=False, retry=2).run([ParallelTask("t", run=fails_once)])["t"]
    assert kinds(result) == ["attempt", "backoff", "attempt"]
    assert [span.detail for span in result.trace] == ["failed, agent", "", "succeeded"]


def test_a_question_to_a_person_is_a_wait(server):
    person = UserProxyAgent("doctor", code_execution_config=False, human_input_mode="ALWAYS")
    helper = AssistantAgent("helper", llm_config=server.llm_config())
    runner = ParallelAgentRunner(progress=False, human_input=lambda question: "exit")
    result = runner.run([ParallelTask("t", "x", agent=(person, helper))])["t"]
    assert "a person" in [span.label for span in result.trace if span.kind == "wait"]

"""S6, M1 on AG2 Classic: limits hold for model calls and tools, calls are cut, other tasks are unharmed."""

import asyncio
import time

import pytest
from autogen import ConversableAgent

from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

pytestmark = pytest.mark.usefixtures("no_threads_left")

LATE = 0.25
"""Seconds after its limit by which a result must be there, the measured lag of the engine apart: a promise in seconds."""

LIMIT = 0.7


def sleep():
    """Sleeps."""
    time.sleep(4)


def spin():
    """Spins."""
    while True:
        pass


async def wait():
    """Waits."""
    await asyncio.sleep(60)


async def swallow():
    """Swallows cancellation."""
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            await asyncio.sleep(end - time.monotonic())
        except asyncio.CancelledError:
            continue


async def block_a_thread():
    """Blocks a thread."""
    await asyncio.to_thread(time.sleep, 4)


TOOLS = {
    sleep: ("abandoned",),
    spin: ("cut",),
    wait: ("unwound",),
    swallow: ("abandoned",),
    block_a_thread: ("unwound",),
}

FAULTS = {
    "hang": Fault.hang(),
    "trickle": Fault.trickle(0.05),
}


def answer(request):
    """Calls the one tool there is, else answers."""
    tools = [tool["function"]["name"] for tool in request.body.get("tools", [])]
    return Reply(tool_calls=[ToolCall(tools[0])]) if tools else Reply("fine")


@pytest.fixture(scope="module")
def server():
    with ModelServer(answer) as server:
        yield server


def check(results, server, ended):
    stuck = results["stuck"]
    assert (stuck.status, stuck.stop_reason, stuck.error.kind) == ("timed_out", "deadline", "timeout")
    assert stuck.ended in ended
    assert stuck.duration - LIMIT <= LATE + results.metrics["engine_lag_max"]
    assert stuck.chat_history[0]["content"] == "go"
    after = results["after"]
    assert after.ok
    assert after.queued - stuck.duration <= LATE + results.metrics["engine_lag_max"], "the slot was not free"
    assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, 10)


def after(server):
    config = {"name": "plain", "llm_config": server.llm_config()}
    return ParallelTask("after", "hello", config)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_stuck_tool(server, tool):
    def build(ctx):
        agent = ConversableAgent("doctor", llm_config=ctx.llm_config(server.llm_config()), human_input_mode="NEVER")
        agent.register_for_llm(description="A tool.")(tool)
        return agent

    tasks = [ParallelTask("stuck", "go", agent=build, timeout=LIMIT), after(server)]
    results = ParallelAgentRunner(max_workers=1, grace=0.3, progress=False).run(tasks)
    check(results, server, TOOLS[tool])


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_stuck_model(server, fault, stream):
    """The call is cut, and the server sees it at once."""
    server.ledger.reset()
    server.fail_next(FAULTS[fault])
    config = {"name": "doctor", "llm_config": server.llm_config(stream=stream)}
    tasks = [ParallelTask("stuck", "go", config, timeout=LIMIT), after(server)]
    results = ParallelAgentRunner(max_workers=1, grace=5, progress=False).run(tasks)
    check(results, server, ("cut",))
    assert server.ledger.cut == 1
    assert results["stuck"].usage.unreported_calls == 1
    assert results["stuck"].usage.estimated_tokens > 0
    assert results.metrics["wall"] < 5, "nobody had to be waited for"

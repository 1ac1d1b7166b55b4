"""F29, F30: tools that fail, and teams that never end."""

import asyncio
import importlib
import logging

import pytest
from agents import INSTALLED, Routed, run, served, statuses

from ag2_parallel import ParallelTask
from ag2_parallel.testing import ModelServer, Reply, ToolCall

pytestmark = pytest.mark.usefixtures("no_threads_left")


def good() -> str:
    return "42"


def bad() -> str:
    raise ZeroDivisionError("token=sk-live-123456")


async def async_good() -> str:
    await asyncio.sleep(0)
    return "43"


async def async_bad() -> str:
    await asyncio.sleep(0)
    raise ZeroDivisionError("token=sk-live-123456")


class TestTools:
    """F29: the agent is told of an error, and the other tools' results survive."""

    @pytest.mark.parametrize(
        "tools", [(good, bad), (bad, good), (async_good, async_bad), (bad, async_good), (async_bad, good, bad)]
    )
    @pytest.mark.parametrize("handle_errors", ["collect", "fail_fast"])
    def test_one_tool_that_raises_beside_good_ones(self, line, tools, handle_errors, caplog):
        with served() as server, caplog.at_level(logging.DEBUG):
            tasks = [
                ParallelTask("t", "call", agent=line.agent_calling(server, *tools)),
                ParallelTask("u", "hello", agent=line.ok(server)),
            ]
            results = run(tasks, handle_errors=handle_errors)
            asked = [r for r in server.ledger.requests if r.text == "call"]
        told = [message["content"] for message in asked[-1].body["messages"] if message["role"] == "tool"]
        assert len(told) == len(tools)
        for tool, text in zip(tools, told, strict=True):
            assert line.was_told_of_error(text) if "bad" in tool.__name__ else text in {"42", "43"}
        assert statuses(results) == ["succeeded", "succeeded"]
        assert results["t"].output
        assert results["u"].output == "echo: hello"
        assert "ZeroDivisionError" in caplog.text
        assert "sk-live-123456" not in caplog.text

    def test_a_model_with_nothing_to_say_after_an_error_is_no_success(self, line):
        def reply(request):
            answered = any(message["role"] == "tool" for message in request.messages)
            return "" if answered else Reply(tool_calls=[ToolCall("bad")])

        with ModelServer(reply) as server:
            result = run([ParallelTask("t", "x", agent=line.agent_calling(server, bad))])["t"]
        assert (result.status, result.error.kind) == ("failed", "invalid_answer")
        assert len(result.chat_history) >= 3

    @pytest.mark.parametrize(
        "error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError("by the tool"), GeneratorExit()]
    )
    @pytest.mark.parametrize("how", ["sync", "async"])
    def test_what_is_no_exception_is_the_tasks_failure_and_kills_no_worker(self, line, error, how):
        def leave() -> str:
            raise error

        async def async_leave() -> str:
            await asyncio.sleep(0)
            raise error

        tool = leave if how == "sync" else async_leave
        with served() as server:
            tasks = [ParallelTask("t", "call", agent=line.agent_calling(server, good, tool))]
            tasks += [ParallelTask(f"u{i}", "hello", agent=line.ok(server)) for i in range(3)]
            results = run(tasks, max_workers=1)
        assert statuses(results) == ["failed", *["succeeded"] * 3]
        failed = results["t"]
        assert (failed.error.kind, failed.error.type, failed.error.tool) == (
            "agent",
            type(error).__name__,
            tool.__name__,
        )
        assert tool.__name__ in failed.error.traceback
        assert len(failed.chat_history) >= 2
        assert results.stop_reason is None


FORMS = {"classic": ("pair", "list", "group chat", "pattern"), "ag2": ("in a circle", "to and fro")}


@pytest.fixture(params=[f"{line}: {form}" for line in INSTALLED for form in FORMS[line]])
def endless(request):
    """A line, and what makes a team that never ends from a server."""
    name, _, form = request.param.partition(": ")
    line = importlib.import_module(f"{name}_line")
    return line, line.ENDLESS[form]


class TestEndlessTeams:
    """F30."""

    def test_the_number_of_turns_ends_it_and_says_so(self, endless):
        line, team = endless
        with ModelServer("and on") as server:
            tasks = [
                ParallelTask("loop", "go", agent=lambda ctx: team(Routed(ctx, server)), max_turns=15),
                ParallelTask("ok", "hello", agent=line.ok(server)),
            ]
            results = run(tasks, timeout=50)
        assert statuses(results) == ["succeeded", "succeeded"]
        assert results["loop"].stop_reason == "max_turns"
        assert results["loop"].output == "and on"
        assert len(results["loop"].chat_history) >= 15
        assert results["ok"].stop_reason == "answered"

    def test_the_time_ends_it_and_says_so(self, endless):
        line, team = endless
        with ModelServer(lambda request: Reply("and on", latency=0.03)) as server:
            tasks = [
                ParallelTask("loop", "go", agent=lambda ctx: team(Routed(ctx, server)), max_turns=10**5, timeout=0.8),
                ParallelTask("ok", "hello", agent=line.ok(server)),
            ]
            results = run(tasks, max_workers=2)
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
            seen = server.ledger.count
        assert statuses(results) == ["timed_out", "succeeded"]
        loop = results["loop"]
        assert loop.stop_reason == "deadline"
        assert loop.ended in {"cut", "unwound"}
        assert 3 <= len(loop.chat_history) <= seen + 2
        assert 0 <= loop.usage.calls - (len(loop.chat_history) - 1) <= 1
        assert results.metrics["abandoned"] == 0

    def test_each_end_has_a_reason_of_its_own(self, classic):
        with ModelServer(["one", "two", "three TERMINATE"]) as server:
            results = run([ParallelTask("word", "go", agent=lambda: classic.talkers(server), max_turns=50)])
            assert results["word"].stop_reason == "termination_message"
        with ModelServer("and on") as server:
            few = classic.talkers(server)
            for agent in few:
                agent._max_consecutive_auto_reply = 3
            assert run([ParallelTask("replies", "go", agent=tuple(few))])["replies"].stop_reason == "auto_reply_limit"

"""Tools: sync and async, those that fail, and those that are stopped."""

import asyncio
import contextvars
import logging
import threading

import pytest
from autogen import AssistantAgent, ConversableAgent
from classic_scope import Scope, attempt, run, task

from ag2_parallel.errors import TaskStopped
from ag2_parallel.testing import ModelServer, Reply, ToolCall

tenant = contextvars.ContextVar("tenant", default="nobody")


def calling(*names):
    """A model that calls the tools at once, and then says what they said."""

    def reply(request):
        results = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
        return " & ".join(results) if results else Reply(tool_calls=[ToolCall(name) for name in names])

    return reply


def with_tools(server, *tools):
    agent = AssistantAgent("a", llm_config=server.llm_config())
    for tool in tools:
        agent.register_for_llm(description=tool.__name__)(tool)
    return agent


def good() -> str:
    return "good"


def bad() -> str:
    raise ZeroDivisionError("token=sk-live-12345678")


async def async_bad() -> str:
    await asyncio.sleep(0)
    raise ZeroDivisionError("async")


async def who() -> str:
    await asyncio.sleep(0)
    return tenant.get()


def test_an_async_tool_runs_in_the_attempts_context(tmp_path):
    def job():
        tenant.set("acme")
        with ModelServer(calling("who")) as server:
            return run(task(), lambda _: with_tools(server, who), tmp_path=tmp_path)

    ran = contextvars.copy_context().run(job)
    assert ran.answer.output == "acme"
    assert ran.scope.names().count("executed_function") == 1


@pytest.mark.parametrize("tool", [bad, async_bad])
def test_a_failing_tool_is_told_to_the_agent_and_leaves_its_traceback(tmp_path, caplog, tool):
    with ModelServer(calling("good", tool.__name__)) as server, caplog.at_level(logging.INFO, "ag2_parallel.tools"):
        ran = run(task(), lambda _: with_tools(server, good, tool), tmp_path=tmp_path)
    assert ran.answer.output.startswith("good & Error: ")
    (record,) = caplog.records
    assert "ZeroDivisionError" in record.message
    assert f"in {tool.__name__}" in record.message
    assert "sk-live-12345678" not in record.message
    (failed,) = [fields for _, fields in ran.scope.emitted if fields.get("name") == "tool_failed"]
    assert failed["content"]["tool"] == tool.__name__


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_is_no_exception_gets_through_ag2(tmp_path, error):
    def leave() -> str:
        raise error

    with ModelServer(calling("leave")) as server:
        ran = attempt(task(), lambda _: with_tools(server, leave), tmp_path=tmp_path)
    assert ran.error is error
    assert ran.scope.draft.tool == "leave"


def test_a_stop_gets_through_a_tool_and_ag2(tmp_path):
    def stopping() -> str:
        ran_scope.stopped.set()
        return "late"

    ran_scope = Scope()
    with ModelServer(calling("stopping")) as server:
        ran = attempt(task(), lambda _: with_tools(server, stopping), tmp_path=tmp_path, scope=ran_scope)
        assert isinstance(ran.error, TaskStopped)
        assert server.ledger.count == 1


def test_a_stop_cancels_an_async_tool(tmp_path):
    cancelled = threading.Event()
    scope = Scope()

    async def slow() -> str:
        scope.stopped.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "late"

    with ModelServer(calling("slow")) as server:
        ran = attempt(task(), lambda _: with_tools(server, slow), tmp_path=tmp_path, scope=scope)
    assert isinstance(ran.error, TaskStopped)
    assert cancelled.is_set()


@pytest.mark.parametrize("number", range(1, 8))
def test_every_event_is_a_checkpoint(tmp_path, number):
    """Seven events of a chat with one tool call; the stop lands at each of them."""
    scope = Scope(stop_at=lambda scope: len(scope.names()) >= number)
    with ModelServer(calling("good")) as server:
        ran = attempt(task(max_turns=2), lambda _: with_tools(server, good), tmp_path=tmp_path, scope=scope)
    assert isinstance(ran.error, TaskStopped)
    assert len(ran.scope.names()) == number
    assert ran.texts[0] == "hello"


@pytest.mark.parametrize("fails", [False, True])
def test_a_function_map_entry_that_returns_an_awaitable(tmp_path, caplog, fails):
    def wrapped():
        return async_bad() if fails else who()

    def make(_):
        caller = AssistantAgent("a", llm_config=server.llm_config() | {"tools": [schema]})
        stop = {"is_termination_msg": lambda message: not message.get("tool_calls")}
        user = ConversableAgent(
            "u", llm_config=False, human_input_mode="NEVER", function_map={"wrapped": wrapped}, **stop
        )
        return user, caller

    schema = {"type": "function", "function": {"name": "wrapped", "description": "", "parameters": {}}}
    with ModelServer(calling("wrapped")) as server, caplog.at_level(logging.INFO, "ag2_parallel.tools"):
        ran = run(task(), make, tmp_path=tmp_path)
    assert ran.answer.output == ("Error: async" if fails else "nobody")
    assert len(caplog.records) == fails


class TestHumanInput:
    def proxy(self, mode):
        return ConversableAgent("person", llm_config=False, human_input_mode=mode, default_auto_reply="hm")

    def pair(self, server, mode="ALWAYS"):
        return self.proxy(mode), AssistantAgent("a", llm_config=server.llm_config())

    def test_it_is_refused_by_naming_the_agent(self, tmp_path):
        with ModelServer("a question?") as server:
            ran = attempt(task(), lambda _: self.pair(server), tmp_path=tmp_path)
        assert ran.error.kind == "human_input"
        assert '"person"' in str(ran.error)
        assert ran.texts == ["hello", "a question?"]

    def test_a_hook_answers_and_may_end_the_chat(self, tmp_path):
        answers = iter(["more", "exit"])
        asked = []

        def hook(request):
            asked.append((request.task, request.agent))
            return next(answers)

        with ModelServer("a question?") as server:
            ran = run(task(), lambda _: self.pair(server), tmp_path=tmp_path, scope=Scope(hook=hook))
        assert ran.answer.stop_reason == "human_exit"
        assert ran.texts == ["hello", "a question?", "more", "a question?"]
        assert asked == [("t", "person")] * 2
        assert ran.scope.waits == 2

    def test_a_refusal_inside_a_tool_is_not_made_an_answer_of_the_tool(self, tmp_path):
        def consult() -> str:
            other = ConversableAgent("other", llm_config=False, human_input_mode="NEVER", default_auto_reply="well?")
            self.proxy("ALWAYS").initiate_chat(other, message="?", max_turns=2, summary_args={})
            return "consulted"

        with ModelServer(calling("consult")) as server:
            ran = attempt(task(), lambda _: with_tools(server, consult), tmp_path=tmp_path)
        assert ran.error.kind == "human_input"

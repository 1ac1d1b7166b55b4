"""The stream that calls plain coroutine functions as they are is AG2's own in all that is seen of it."""

import asyncio
from typing import Annotated, Any, Union

import pytest
from ag2 import Agent, Context, Depends, Inject, MemoryStream, Variable, observer
from ag2.events import BaseEvent, ModelMessage, ModelResponse, ToolCallEvent, UsageEvent
from ag2.testing import TestConfig

from ag2_parallel.frameworks.ag2.stream import FastStream, _form


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def bare(event):
    return event


async def typed(event: ModelMessage):
    return event


async def either(event: Union[ModelMessage, ModelResponse]):  # noqa: UP007 - AG2's `|` makes a condition
    return event


async def by_name(event: "ModelMessage", context: "Context"):
    return event, context


async def with_context(event: BaseEvent, context: Context):
    return event, context


async def any_event(event: Any):
    return event


class Watcher:
    async def method(self, event, context: Context):
        return event, context

    async def __call__(self, event):
        return event


async def defaulted(event, more=1):
    return event


async def unmarked(event, context):
    return event, context


async def injected(event, thing: Annotated[Any, Inject()]):
    return event


async def depending(event, thing: Annotated[Any, Depends(lambda: 1)]):
    return event


async def of_a_variable(event, thing: Annotated[str, Variable()]):
    return event


async def of_many(*events):
    return events


async def of_text(event: str):
    return event


async def unknown(event: "NoSuchName"):  # noqa: F821 - on purpose
    return event


def plain(event):
    return event


@pytest.mark.parametrize("function", [bare, typed, any_event, either, by_name, with_context, Watcher().method])
def test_called_as_they_are(function):
    assert _form(function) is not None


@pytest.mark.parametrize(
    "function",
    [defaulted, unmarked, injected, depending, of_a_variable, of_many, of_text, unknown, plain, Watcher(), add],
)
def test_subscribed_as_ag2_does_it(function):
    assert _form(function) is None


def test_every_subscription_of_a_turn_with_a_tool_is_plain():
    others = []

    class Watched(FastStream):
        __slots__ = ()

        def subscribe(self, func=None, **options):
            if _form(func) is None:
                others.append(func)
            return super().subscribe(func, **options)

    agent = Agent("agent", config=TestConfig(ToolCallEvent(name="add", arguments='{"a": 1, "b": 2}'), "3"), tools=[add])
    assert asyncio.run(agent.ask("hello", stream=Watched())).body == "3"
    assert others == []


@pytest.mark.parametrize("kind", [MemoryStream, FastStream])
def test_a_turn_publishes_the_same(kind):
    seen = []

    async def ask():
        stream = kind()

        @stream.where(ModelMessage | UsageEvent | ToolCallEvent).subscribe()
        async def _(event):
            seen.append(type(event).__name__)

        @observer(ModelMessage)
        async def observing(event: ModelMessage, thing: Annotated[str, Inject()]):
            seen.append(thing)

        @observer(ModelMessage)
        def plainly(event: ModelMessage):
            seen.append("plain")

        stream.subscribe(lambda event: seen.append("lambda") if isinstance(event, ModelMessage) else None)
        script = TestConfig(ToolCallEvent(name="add", arguments='{"a": 1, "b": 2}'), "3")
        agent = Agent("agent", config=script, tools=[add], observers=[observing, plainly])
        reply = await agent.ask("hello", stream=stream, dependencies={"thing": "given"})
        again = await agent.ask("more", stream=stream, dependencies={"thing": "given"})
        assert len(list(await stream.history.get_events())) > 4
        return reply.body, again.body

    assert asyncio.run(ask()) == ("3", "3")
    assert sorted(set(seen)) == ["ModelMessage", "ToolCallEvent", "given", "lambda", "plain"]


@pytest.mark.parametrize("kind", [MemoryStream, FastStream])
def test_a_person_is_asked_and_an_interrupter_may_change_what_is_said(kind):
    async def ask_back(context: Context):
        return await context.input("which?")

    async def ask():
        async def answer(event):
            return "this one"

        script = TestConfig(ToolCallEvent(name="ask_back", arguments="{}"), "done")
        agent = Agent("agent", config=script, tools=[ask_back], hitl_hook=answer)
        return (await agent.ask("hello", stream=kind())).body

    assert asyncio.run(ask()) == "done"


@pytest.mark.parametrize("kind", [MemoryStream, FastStream])
def test_an_event_that_a_function_does_not_take_fails_alike(kind):
    async def send():
        stream = kind()
        stream.subscribe(typed)
        agent = Agent("agent", config=TestConfig("fine"))
        with pytest.raises(Exception, match=r"(?i)validation error|instance of ModelMessage"):
            await agent.ask("hello", stream=stream)

    asyncio.run(send())

"""AG2 1.x through both doors: retries, counts, cuts and events, and what is governed."""

import asyncio
import copy
import dataclasses

import httpx2
import pytest
from ag2 import Agent, MemoryStream
from ag2.events import ModelMessageChunk
from ag2_doors import DOORS, Asked, Scope, config, on_a_loop, request_parts, until
from door_cases import ANSWER
from gate_harness import harness, http_answer, raw_server

from ag2_parallel.errors import TaskStopped
from ag2_parallel.events import ModelCallFinished, ModelCallRetrying, ModelCallStarted
from ag2_parallel.frameworks.ag2.direct_door import DirectClient
from ag2_parallel.frameworks.ag2.govern import governed
from ag2_parallel.gate.through_async import clients_loop
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

ONCE = RetryPolicy(1)


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def raw():
    with raw_server() as server:
        server.answer = http_answer(ANSWER)
        yield server


async def cancelled_when(condition, ask):
    """Cancel an ask once a condition holds."""
    asking = asyncio.ensure_future(ask)
    await until(condition)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


def closed(client):
    """Close a user's client on the loop that its connections are on."""
    asyncio.run_coroutine_threadsafe(client.aclose(), clients_loop()).result(10)


# ---- the gate


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_the_gate_retries_and_counts(engine, door, streaming):
    with ModelServer(Reply("fine", usage=(7, 3))) as server:
        server.fail_next(Fault.status(503), 2)
        attempt = engine.attempt()
        asked = Asked(attempt, door, config(server.base_url, streaming=streaming, max_retries=5), price=(1.0, 2.0))
        assert asked.body == "fine"
        usage = attempt.usage()
        assert (usage.prompt_tokens, usage.completion_tokens, usage.calls, usage.retried_calls) == (7, 3, 1, 2)
        assert usage.cost == pytest.approx(0.013)
        assert list(usage.by_model) == ["gpt-4o-mini"]
        assert server.ledger.count == 3, "the SDK itself does not retry"


def test_observers_hear_the_same(engine):
    heard = []
    with ModelServer("fine") as server:
        for door in DOORS:
            server.fail_next(Fault.status(500))
            attempt = engine.attempt()
            Asked(attempt, door, config(server.base_url))
            told = attempt.notes.events
            kinds = {ModelCallStarted, ModelCallRetrying, ModelCallFinished}
            assert [type(event) for event in told if type(event) in kinds] == [
                ModelCallStarted, ModelCallRetrying, ModelCallStarted, ModelCallFinished,
            ]  # fmt: skip
            heard.append([(event.type, event.call, event.endpoint, getattr(event, "model", None)) for event in told])
            assert attempt.notes.signs >= 1
    assert heard[0] == heard[1]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_a_cut_ends_a_call_in_flight_and_refuses_the_next(engine, door, streaming):
    with ModelServer("fine") as server:
        server.reply = Fault.hang()
        attempt = engine.attempt()
        given = governed(config(server.base_url, streaming=streaming), Scope(attempt), direct=door == "direct")

        async def ask():
            asking = asyncio.ensure_future(Agent("agent", config=given).ask("hello"))
            await until(lambda: server.ledger.in_flight)
            await asyncio.to_thread(engine.cut, attempt)
            with pytest.raises(TaskStopped):
                await asking
            await until(lambda: server.ledger.cut == 1)
            with pytest.raises(TaskStopped):
                await Agent("agent", config=given).ask("hello")

        on_a_loop(ask())
        assert attempt.was_cut
        assert server.ledger.count == 1
        assert attempt.usage().unreported_calls == 1


@pytest.mark.parametrize("door", DOORS)
def test_a_cancelled_ask_cuts_its_call(engine, door):
    with ModelServer("fine") as server:
        server.reply = Fault.hang()
        attempt = engine.attempt()
        given = governed(config(server.base_url), Scope(attempt), direct=door == "direct")

        async def ask():
            await cancelled_when(lambda: server.ledger.in_flight, Agent("agent", config=given).ask("hello"))
            await until(lambda: server.ledger.cut == 1)
            server.reply = Reply("on it goes")
            assert (await Agent("agent", config=given).ask("hello")).body == "on it goes"

        on_a_loop(ask())
        assert (attempt.usage().calls, attempt.usage().unreported_calls) == (1, 1)


@pytest.mark.parametrize("door", DOORS)
def test_an_ask_cancelled_within_its_stream_closes_the_connection(engine, door):
    with ModelServer("fine") as server:
        server.reply = Reply("a b c d e f g h", chunk_delay=5.0)
        attempt = engine.attempt()
        given = governed(config(server.base_url, streaming=True), Scope(attempt), direct=door == "direct")

        async def ask():
            heard, stream = [], MemoryStream()

            async def note(event):
                heard.append(event)

            stream.where(ModelMessageChunk).subscribe(note)
            await cancelled_when(lambda: heard, Agent("agent", config=given).ask("hello", stream=stream))
            await until(lambda: server.ledger.cut == 1)

        on_a_loop(ask())


@pytest.mark.parametrize("door", DOORS)
def test_no_try_is_made_that_would_come_after_the_deadline(engine, door):
    with ModelServer("fine") as server:
        server.reply = Fault.status(429, retry_after=60)
        asked = Asked(engine.attempt(remaining=lambda: 5.0), door, config(server.base_url))
        assert (type(asked.error).__name__, asked.error.status_code) == ("RateLimitError", 429)
        assert server.ledger.count == 1


@pytest.mark.parametrize("door", DOORS)
def test_a_stopped_attempt_makes_no_call(engine, raw, door):
    def stopped():
        raise TaskStopped("deadline")

    with pytest.raises(TaskStopped):
        Asked(engine.attempt(check_call=stopped), door, config(raw.url))
    assert raw.requests == []


# ---- what is governed


COPIES = {
    "itself": lambda given: given,
    "copy()": lambda given: given.copy(),
    "copy with changes": lambda given: given.copy(temperature=0.5),
    "replace": lambda given: dataclasses.replace(given, seed=1),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("door", DOORS)
def test_copies_are_governed_too(engine, raw, door, how):
    attempt = engine.attempt()
    given = COPIES[how](governed(config(raw.url), Scope(attempt), direct=door == "direct"))
    assert on_a_loop(Agent("agent", config=given).ask("hello")).body == "fine"
    assert attempt.usage().calls == 1


def test_sub_agents_are_governed(engine):
    with ModelServer(Reply("fine", usage=(7, 3))) as server:
        attempt = engine.attempt()
        given = governed(config(server.base_url), Scope(attempt))
        child = Agent("child", config=given)
        parent = Agent("parent", config=given, tools=[child.as_tool(description="asks the child")])
        server.reply = lambda request: (
            Reply(tool_calls=[ToolCall("task_child", {"objective": "do"})])
            if request.messages[-1]["role"] == "user" and "tools" in request.body
            else Reply("done", usage=(7, 3))
        )
        assert on_a_loop(parent.ask("hello")).body == "done"
        assert attempt.usage().calls == server.ledger.count == 3


def test_the_callers_configuration_is_as_it_was(engine, raw):
    given = config(raw.url, max_retries=4)
    before = dataclasses.replace(given)
    made = governed(given, Scope(engine.attempt()))
    on_a_loop(Agent("agent", config=made).ask("hello"))
    assert given == before
    assert (type(given), given.http_client) == (type(before), None)
    assert (made.max_retries, made.http_client) == (4, None), "what a copy shows is what the user said"
    assert isinstance(made, type(given))
    assert repr(made) == repr(given)


def test_what_else_is_asked_of_the_client_is_the_sdks(engine, raw):
    raw.answer = http_answer(
        {"object": "list", "data": [{"id": "m", "object": "model", "created": 0, "owned_by": "x"}]}
    )
    direct = governed(config(raw.url), Scope(engine.attempt())).create()._client
    assert isinstance(direct, DirectClient)
    assert copy.copy(direct).api_key == direct.api_key

    async def listed():
        return [model.id async for model in direct.models.list()]

    assert on_a_loop(listed()) == ["m"]


@pytest.mark.parametrize("door", DOORS)
def test_a_users_own_client_sends_and_serves_several_tasks(engine, raw, door):
    seen = []

    async def hook(request):
        seen.append(request.url.path)

    client = httpx2.AsyncClient(headers={"x-mine": "yes"}, event_hooks={"request": [hook]})
    for _ in range(3):
        asked = Asked(engine.attempt(), door, config(raw.url, http_client=client))
        assert (asked.body, asked.sent) == ("fine", 0)
    assert seen == ["/chat/completions"] * 3
    assert ("x-mine", "yes") in request_parts(raw.requests[0])[1]
    assert raw.connections == 1, "its connection is kept"
    closed(client)


def test_a_users_own_client_is_cut_and_its_errors_are_the_gates(engine):
    with ModelServer("fine") as server:
        server.fail_next(Fault.reset(), 1)
        client = httpx2.AsyncClient()
        attempt = engine.attempt()
        given = config(server.base_url, http_client=client)
        assert Asked(attempt, "http", given).body == "fine"
        assert attempt.usage().retried_calls == 1
        server.reply = Fault.hang()
        made = governed(given, Scope(attempt))

        async def ask():
            await cancelled_when(lambda: server.ledger.in_flight, Agent("agent", config=made).ask("hello"))
            await until(lambda: server.ledger.cut == 1)

        on_a_loop(ask())
        closed(client)

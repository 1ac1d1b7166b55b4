"""AG2 1.x: recorded calls are replayed from a tape and from a cassette, whichever door they took."""

import pytest
from ag2.events import ModelMessageChunk, ToolCallEvent
from ag2.testing import TestConfig
from ag2_doors import Asked, config
from gate_harness import harness
from late_tape import LateTape

from ag2_parallel.cassettes import Record, Replay
from ag2_parallel.gate.cassette import open_cassette
from ag2_parallel.redaction import Redactor
from ag2_parallel.testing import ModelServer, Reply, ToolCall


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def server():
    def answer(request):
        if request.messages[-1]["role"] == "tool":
            return Reply("three", usage=(9, 1))
        return Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})], usage=(7, 3))

    with ModelServer(answer) as made:
        yield made


def scripted(_server):
    script = [ModelMessageChunk("let me"), ToolCallEvent(name="add", arguments='{"a": 1, "b": 2}', id="c"), "three"]
    return TestConfig(*script, model="m")


WAYS = {
    "direct": ("direct", lambda server: config(server.base_url)),
    "streamed": ("direct", lambda server: config(server.base_url, streaming=True)),
    "http": ("http", lambda server: config(server.base_url)),
    "by itself": ("direct", scripted),
}


def kinds(asked):
    return [type(event).__name__ for event in asked.events]


@pytest.mark.parametrize("way", WAYS)
def test_a_second_attempt_replays_the_first(engine, server, way):
    door, make = WAYS[way]
    tape = LateTape()
    first = Asked(engine.attempt(tape=tape), door, make(server), tools=[add])
    calls = server.ledger.count
    attempt = engine.attempt(tape=LateTape(tape.kept))
    second = Asked(attempt, door, make(server), tools=[add])
    assert first.body == second.body == "three"
    assert kinds(first) == kinds(second)
    assert server.ledger.count == calls
    usage = attempt.usage()
    assert (usage.calls, usage.replayed_calls) == (0, 2)


@pytest.mark.parametrize("way", WAYS)
def test_a_cassette_plays_what_it_recorded(engine, server, way, tmp_path):
    door, make = WAYS[way]
    path = tmp_path / "calls.jsonl"
    found = []
    for wanted in (Record(path), Replay(path)):
        cassette = open_cassette(wanted, Redactor())
        asked = Asked(engine.attempt(cassette=cassette, task="t"), door, make(server), tools=[add])
        cassette.close()
        assert asked.body == "three"
        found.append((kinds(asked), server.ledger.count))
    assert found[0] == found[1]

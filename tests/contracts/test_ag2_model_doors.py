"""AG2 1.x: the direct door and the HTTP door are one: the same requests, answers, errors, events, counts and cuts."""

import json
import socket

import httpx2
import pytest
from ag2.events import ImageInput
from ag2_doors import DOORS, Asked, config, request_parts
from door_cases import ANSWER, ANSWERS, Weather, answer, choice
from gate_harness import harness, http_answer, raw_server

from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.redaction import Redactor
from ag2_parallel.testing import Fault, ModelServer, Reply

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


def once_a_tool_ran(first):
    """The answer `first`, and a plain one to a request with a tool's result: AG2 goes on for as long as tools are called."""
    return lambda request, _number: http_answer(ANSWER) if b"tool_call_id" in request else first


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


# ---- requests

REQUESTS = {
    "plain": ({}, {}),
    "sampling": ({"temperature": 0.3, "top_p": 0.5, "max_tokens": 20, "seed": 4, "user": "me", "stop": ["x"]}, {}),
    "null": ({"temperature": None}, {}),
    "reasoning": ({"reasoning_effort": "low", "max_completion_tokens": 30, "verbosity": "low"}, {}),
    "tools": ({"parallel_tool_calls": False}, {"tools": [add]}),
    "tool choice": ({"tool_choice": "required"}, {"tools": [add]}),
    "schema": ({}, {"response_schema": Weather}),
    "extra body": ({"extra_body": {"guided_json": {"type": "object"}, "top_k": 3}}, {}),
    "extra body instead": ({"temperature": 1.0, "extra_body": {"temperature": 0.0}}, {}),
    "default headers": ({"default_headers": {"X-Team": "five", "User-Agent": "mine"}}, {}),
    "organization": ({"organization": "org-1", "project": "proj_1"}, {}),
    "query": ({"default_query": {"trace": "1"}}, {}),
    "timeout": ({"timeout": 17.5}, {}),
    "parts of a timeout": ({"timeout": httpx2.Timeout(3.0, connect=1.0)}, {}),
    "trailing slash": ({"base_url": "{url}/v1/"}, {}),
    "path": ({"base_url": "{url}/proxy/openai/v1"}, {}),
    "azure": (
        {
            "base_url": "{url}/openai/deployments/gpt",
            "default_query": {"api-version": "2024-10-21"},
            "default_headers": {"api-key": "k" * 32},
        },
        {},
    ),
    "the rest": (
        {"logit_bias": {"50256": -100}, "metadata": {"a": "b"}, "n": 1, "store": False, "service_tier": "flex",
         "frequency_penalty": 0.1, "presence_penalty": 0.2, "logprobs": True, "top_logprobs": 2,
         "prompt_cache_key": "k", "safety_identifier": "s", "modalities": ["text"]}, {},
    ),
    "image": ({}, {"messages": [ImageInput(data=b"\x89PNG", media_type="image/png")]}),
    "text": ({}, {"messages": ['héllo \U0001f600 "\\\n']}),
}  # fmt: skip
"""By name: what a configuration has more, and options of the ask."""


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_server_sees_the_same_request(engine, raw, name, streaming):
    more, options = REQUESTS[name]
    more = {key: value.format(url=raw.url) if key == "base_url" else value for key, value in more.items()}
    seen = []
    for door in DOORS:
        given = config(**{"base_url": f"{raw.url}/v1"} | more, streaming=streaming)
        messages = options.get("messages", ())
        rest = {key: value for key, value in options.items() if key != "messages"}
        asked = Asked(engine.attempt(), door, given, *messages, **rest)
        assert streaming or asked.body == "fine"
        assert asked.sent == (door == "direct")
        seen.append(request_parts(raw.requests[-1]))
    assert seen[0] == seen[1]
    assert len(raw.requests) == 2


def test_what_the_direct_door_does_not_know_is_the_sdks(engine, raw):
    odd = {"temperature": float("nan")}, {"extra_body": {"stream": True}}, {"metadata": {"a": object()}}
    for more in odd:
        found = [Asked(engine.attempt(ONCE), door, config(raw.url, **more)) for door in DOORS]
        assert [asked.sent for asked in found] == [0, 0]
        assert found[0].told == found[1].told


# ---- answers


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_taken_in_the_same_way(engine, raw, name):
    raw.answer = once_a_tool_ran(ANSWERS[name])
    told, usages = [], []
    for door in DOORS:
        attempt = engine.attempt(ONCE)
        asked = Asked(attempt, door, config(f"{raw.url}/v1"))
        told.append(asked.told)
        usages.append(attempt.usage())
        assert bool(asked.sent) == (door == "direct")
    assert told[0] == told[1]
    assert usages[0] == usages[1]
    assert len(raw.requests) == (4 if name == "tool calls" else 2), (
        "an answer that is given to the SDK is not asked for again"
    )


CHUNKS = {
    "words": [{"content": "some "}, {"content": "words"}],
    "reasoning": [{"reasoning_content": "hm"}, {"content": "so"}],
    "tool calls": [
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1, "b": 2}'}}]},
    ],
    "nothing": [],
}


def events(deltas, *, done=True, usage=True, error=None):
    """A streamed answer."""
    chunk = {"id": "s1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini-2024"}
    parts = [chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    parts.append(chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage:
        parts.append(chunk | {"choices": [], "usage": ANSWER["usage"]})
    if error:
        parts.insert(1, {"error": error})
    text = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + ("data: [DONE]\n\n" if done else "")
    return http_answer(text.encode(), content_type="text/event-stream")


STREAMS = {name: events(deltas) for name, deltas in CHUNKS.items()} | {
    "no end": events(CHUNKS["words"], done=False),
    "no usage": events(CHUNKS["words"], usage=False),
    "an error within": events(CHUNKS["words"], error={"message": "overloaded", "code": "busy"}),
    "no stream": http_answer(ANSWER),
    "an error": ANSWERS["too many"],
    "no json": http_answer(b"data: {oops\n\n", content_type="text/event-stream"),
    "half": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n"
    + events(CHUNKS["words"]).partition(b"\r\n\r\n")[2],
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_taken_in_the_same_way(engine, raw, name):
    raw.answer = once_a_tool_ran(STREAMS[name])
    raw.close_after = name == "half"
    told, usages = [], []
    for door in DOORS:
        attempt = engine.attempt(ONCE)
        asked = Asked(attempt, door, config(raw.url, streaming=True), tools=[add])
        told.append(asked.told)
        usages.append(attempt.usage())
        assert asked.sent >= (door == "direct")
    assert told[0] == told[1]
    assert usages[0] == usages[1]


def test_a_stream_comes_as_it_is_written(engine):
    with ModelServer(Reply("one two three", usage=(5, 3))) as server:
        for door in DOORS:
            attempt = engine.attempt()
            asked = Asked(attempt, door, config(server.base_url, streaming=True))
            assert asked.body == "one two three"
            assert [type(event).__name__ for event in asked.events].count("ModelMessageChunk") > 1
            assert (attempt.usage().prompt_tokens, attempt.usage().completion_tokens) == (5, 3)
            assert (asked.used.prompt_tokens, asked.used.completion_tokens) == (5, 3)


@pytest.mark.parametrize("door", DOORS)
def test_a_tool_turn_is_two_calls(engine, raw, door):
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    raw.answer = once_a_tool_ran(http_answer(answer(choices=choice(tool_calls=[call]))))
    attempt = engine.attempt()
    asked = Asked(attempt, door, config(raw.url), tools=[add])
    assert asked.body == "fine"
    assert (attempt.usage().calls, attempt.usage().prompt_tokens) == (2, 14)
    assert request_parts(raw.requests[1])[2]["messages"][-1]["content"] == "3"


# ---- failures


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.reset(), "connection"),
        (Fault.garbage(), "invalid_answer"),
        (Fault.status(500), "provider"),
        (Fault.status(429), "rate_limit"),
        (Fault.status(400, code="context_length_exceeded"), "context_length"),
    ],
)
def test_a_failure_is_the_same_error_and_kind(engine, fault, kind, streaming):
    with ModelServer("fine") as server:
        server.reply = fault
        found = []
        for door in DOORS:
            attempt = engine.attempt(RetryPolicy(2, initial=0.001, maximum=0.001))
            asked = Asked(attempt, door, config(server.base_url, streaming=streaming))
            error = task_error(asked.error, Redactor()) if asked.error else None
            if streaming and kind == "invalid_answer":
                assert error is None or error.kind in {"invalid_answer", "agent"}
            else:
                assert error.kind == kind
            found.append((asked.told, error and (error.type, error.message, error.status_code, error.retryable)))
        assert found[0] == found[1]


def test_a_timeout_is_the_sdks(engine):
    with ModelServer("fine") as server:
        server.reply = Fault.hang()
        found = [Asked(engine.attempt(ONCE), door, config(server.base_url, timeout=0.2)) for door in DOORS]
        assert [type(asked.error).__name__ for asked in found] == ["APITimeoutError"] * 2
        assert found[0].told == found[1].told
        assert task_error(found[0].error, Redactor()).kind == "timeout"


def test_a_refused_connection(engine):
    nowhere = config(f"http://127.0.0.1:{free_port()}/v1")
    found = [Asked(engine.attempt(ONCE), door, nowhere) for door in DOORS]
    assert found[0].told == found[1].told
    assert type(found[0].error).__name__ == "APIConnectionError"
    assert isinstance(found[0].error.__cause__, httpx2.ConnectError)


@pytest.mark.parametrize("door", DOORS)
def test_a_redirect_is_followed(engine, raw, door):
    moved = http_answer(b"", status=307, headers=[f"Location: {raw.url}/there/chat/completions"])
    raw.answer = lambda request, _number: http_answer(ANSWER) if b"/there/" in request else moved
    assert Asked(engine.attempt(), door, config(raw.url)).body == "fine"
    assert len(raw.requests) == 2


def test_a_server_that_streams_unasked(engine, raw):
    raw.answer = events(CHUNKS["words"])
    found = [Asked(engine.attempt(ONCE), door, config(raw.url)) for door in DOORS]
    assert found[0].told == found[1].told

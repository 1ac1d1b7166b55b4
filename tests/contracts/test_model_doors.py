"""The direct door and the HTTP door are one: the same requests, answers, errors, counts and cuts."""

import copy
import json
import socket

import openai
import pytest
from door_cases import ANSWER, ANSWERS, REQUESTS, TOOLS
from gate_harness import InThread, harness, http_answer, raw_server
from model_doors import DOORS, HELLO, entry, governed, outcome, request_parts

from ag2_parallel.errors import TaskStopped
from ag2_parallel.events import ModelCallFinished, ModelCallRetrying, ModelCallStarted
from ag2_parallel.frameworks.classic.direct_door import DirectClient
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.redaction import Redactor
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

ONCE = RetryPolicy(1)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def raw():
    with raw_server() as server:
        server.answer = http_answer(ANSWER)
        yield server


# ---- requests


@pytest.mark.filterwarnings("ignore:.*will be ignored")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_server_sees_the_same_request(engine, raw, name):
    more, options, params = REQUESTS[name]
    more = {key: value.format(url=raw.url) if key == "base_url" else value for key, value in more.items()}
    seen = []
    for door in DOORS:
        client = governed(engine.attempt(), door, entry(f"{raw.url}/v1") | more, **options)
        if name != "pydantic":
            assert outcome(client, **copy.deepcopy(params))["texts"] == ["fine"]
        else:
            client.create(messages=HELLO)
        assert client.gate.sent == (door == "direct")
        seen.append(request_parts(raw.requests[-1]))
    assert seen[0] == seen[1]
    assert len(raw.requests) == 2
    assert "direct" not in seen[0][2]


def test_parameters_that_the_direct_door_does_not_know_are_the_sdks(engine, raw):
    found = []
    for door in DOORS:
        client = governed(engine.attempt(), door, entry(raw.url))
        odd = {"new_field": 1}, {"temperature": float("nan")}, {"messages": [{"role": "user", "content": object()}]}
        found.append([outcome(client, **params) for params in odd])
        assert client.gate.sent == 0
    assert [each["type"] for each in found[0]] == ["TypeError", "ValueError", "TypeError"]
    assert [each["type"] for each in found[0]] == [each["type"] for each in found[1]]
    assert raw.requests == []


@pytest.mark.parametrize("door", DOORS)
def test_streams_go_through_the_sdk_and_are_the_same(engine, door):
    with ModelServer(Reply("streamed words", usage=(5, 2))) as server:
        attempt = engine.attempt()
        client = governed(attempt, door, entry(server.base_url, stream=True))
        made = outcome(client)
        assert made["texts"] == ["streamed words"]
        assert server.ledger.requests[0].body["stream"] is True
        assert (attempt.usage().prompt_tokens, attempt.usage().completion_tokens) == (5, 2)


# ---- answers


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_taken_in_the_same_way(engine, raw, name):
    raw.answer = ANSWERS[name]
    found, usages = [], []
    for door in DOORS:
        attempt = engine.attempt(ONCE)
        client = governed(attempt, door, entry(f"{raw.url}/v1"))
        found.append(outcome(client))
        usages.append(attempt.usage())
        assert client.gate.sent == (door == "direct")
    assert found[0] == found[1]
    assert usages[0] == usages[1]
    assert len(raw.requests) == 2, "an answer that is given to the SDK is not asked for again"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.reset(), "connection"),
        (Fault.garbage(), "invalid_answer"),
        (Fault.half_stream(), "connection"),
        (Fault.status(500), "provider"),
        (Fault.status(429), "rate_limit"),
        (Fault.status(400, code="context_length_exceeded"), "context_length"),
    ],
)
def test_a_failure_is_the_same_error_and_kind(engine, fault, kind):
    with ModelServer("fine") as server:
        server.reply = fault
        found = []
        for door in DOORS:
            client = governed(
                engine.attempt(RetryPolicy(2, initial=0.001, maximum=0.001)), door, entry(server.base_url)
            )
            found.append(outcome(client))
            with pytest.raises(openai.APIError) as raised:
                client.create(messages=HELLO)
            error = task_error(raised.value, Redactor())
            assert error.kind == kind
            found.append((error.type, error.message, error.status_code, error.retryable))
        assert found[:2] == found[2:]


def test_a_timeout_is_what_ag2_makes_of_it(engine):
    with ModelServer("fine") as server:
        server.reply = Fault.hang()
        found = []
        for door in DOORS:
            client = governed(engine.attempt(ONCE), door, entry(server.base_url, timeout=0.2))
            found.append(outcome(client))
            with pytest.raises(TimeoutError) as raised:
                client.create(messages=HELLO)
            assert task_error(raised.value, Redactor()).kind == "timeout"
        assert found[0] == found[1]
        assert found[0]["cause"]["type"] == "APITimeoutError"


def test_a_refused_connection(engine):
    nowhere = entry(f"http://127.0.0.1:{free_port()}/v1")
    found = [outcome(governed(engine.attempt(ONCE), door, nowhere)) for door in DOORS]
    assert found[0] == found[1]
    assert (found[0]["type"], found[0]["cause"]["type"]) == ("APIConnectionError", "ConnectError")


@pytest.mark.parametrize("door", DOORS)
def test_a_redirect_is_followed(engine, raw, door):
    moved = http_answer(b"", status=307, headers=[f"Location: {raw.url}/there/chat/completions"])
    raw.answer = lambda request, _number: http_answer(ANSWER) if b"/there/" in request else moved
    assert outcome(governed(engine.attempt(), door, entry(raw.url)))["texts"] == ["fine"]
    assert [request_parts(request)[2]["messages"] for request in raw.requests] == [HELLO, HELLO]


@pytest.mark.parametrize("door", DOORS)
def test_a_server_that_streams_unasked(engine, raw, door):
    event = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "hi"}}]}
    body = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode()
    raw.answer = http_answer(body, content_type="text/event-stream")
    assert outcome(governed(engine.attempt(), door, entry(raw.url)))["type"] in {"AttributeError", "TypeError"}
    assert len(raw.requests) == 1


# ---- the gate


@pytest.mark.parametrize("door", DOORS)
def test_the_gate_retries_and_counts(engine, door):
    with ModelServer(Reply("fine", usage=(7, 3))) as server:
        server.fail_next(Fault.status(503), 2)
        attempt = engine.attempt()
        client = governed(attempt, door, entry(server.base_url, price=[1.0, 2.0]))
        made = outcome(client)
        assert made["texts"] == ["fine"]
        assert made["usage"]["total_cost"] == pytest.approx(0.013)
        usage = attempt.usage()
        assert (usage.prompt_tokens, usage.completion_tokens, usage.calls, usage.retried_calls) == (7, 3, 1, 2)
        assert usage.cost == pytest.approx(0.013)
        assert list(usage.by_model) == ["gpt-4o-mini"]
        assert server.ledger.count == 3


def test_observers_hear_the_same(engine):
    heard = []
    with ModelServer("fine") as server:
        for door in DOORS:
            server.fail_next(Fault.status(500))
            attempt = engine.attempt()
            outcome(governed(attempt, door, entry(server.base_url)))
            events = attempt.notes.events
            told = {ModelCallStarted, ModelCallRetrying, ModelCallFinished}
            assert [type(event) for event in events if type(event) in told] == [
                ModelCallStarted, ModelCallRetrying, ModelCallStarted, ModelCallFinished,
            ]  # fmt: skip
            heard.append([(event.type, event.call, event.endpoint, getattr(event, "model", None)) for event in events])
            assert attempt.notes.signs >= 1
    assert heard[0] == heard[1]


@pytest.mark.parametrize("door", DOORS)
def test_the_next_entry_is_tried(engine, door):
    with ModelServer("from the second") as second, ModelServer("never") as first:
        first.reply = Fault.status(503)
        attempt = engine.attempt()
        entries = entry(first.base_url), entry(second.base_url, model="other")
        assert outcome(governed(attempt, door, *entries))["texts"] == ["from the second"]
        assert (first.ledger.count, second.ledger.count) == (2, 1), "an entry before the last is tried twice"
        assert second.ledger.requests[0].model == "other"


@pytest.mark.parametrize("door", DOORS)
def test_entries_of_both_doors_fall_back_on_each_other(engine, door):
    with ModelServer("from the second") as second, ModelServer("never") as first:
        first.reply = Fault.status(503)
        other = entry(second.base_url, direct=door != "direct")
        client = governed(engine.attempt(), "direct", entry(first.base_url, direct=door == "direct"), other)
        assert outcome(client)["texts"] == ["from the second"]
        assert "direct" not in second.ledger.requests[0].body


@pytest.mark.parametrize("door", DOORS)
def test_a_cut_ends_a_call_in_flight_and_refuses_the_next(engine, door):
    with ModelServer("fine") as server:
        server.reply = Fault.hang()
        attempt = engine.attempt()
        client = governed(attempt, door, entry(server.base_url), entry(server.base_url))
        call = InThread(client.create, messages=HELLO)
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight)
        engine.cut(attempt)
        assert isinstance(call.join().error, TaskStopped)
        assert attempt.was_cut
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        with pytest.raises(TaskStopped):
            client.create(messages=HELLO)
        assert server.ledger.count == 1, "a stop starts no fallback"


@pytest.mark.parametrize("door", DOORS)
def test_no_try_is_made_that_would_come_after_the_deadline(engine, door):
    with ModelServer("fine") as server:
        server.reply = Fault.status(429, retry_after=60)
        attempt = engine.attempt(remaining=lambda: 5.0)
        made = outcome(governed(attempt, door, entry(server.base_url)))
        assert (made["type"], made["status_code"]) == ("RateLimitError", 429)
        assert server.ledger.count == 1


@pytest.mark.parametrize("door", DOORS)
def test_a_stopped_attempt_makes_no_call(engine, raw, door):
    def stopped():
        raise TaskStopped("deadline")

    with pytest.raises(TaskStopped):
        governed(engine.attempt(check_call=stopped), door, entry(raw.url)).create(messages=HELLO)
    assert raw.requests == []


# ---- what is in the client


def test_tools_are_called_for_through_both_doors(engine):
    with ModelServer(Reply(tool_calls=[ToolCall("add", {"a": 1})])) as server:
        made = [outcome(governed(engine.attempt(), door, entry(server.base_url)), tools=TOOLS) for door in DOORS]
        called = [each["texts"][0]["tool_calls"][0]["function"] for each in made]
        assert called[0] == called[1] == {"name": "add", "arguments": '{"a": 1}'}


def test_what_else_is_asked_of_the_client_is_the_sdks(engine, raw):
    raw.answer = http_answer(
        {"object": "list", "data": [{"id": "m", "object": "model", "created": 0, "owned_by": "x"}]}
    )
    direct = governed(engine.attempt(), "direct", entry(raw.url))._clients[0]._oai_client
    assert isinstance(direct, DirectClient)
    assert [model.id for model in direct.models.list()] == ["m"]
    assert direct.api_key == entry(raw.url)["api_key"]
    assert direct.chat.with_raw_response is not None
    assert copy.copy(direct).api_key == direct.api_key
    raw.answer = http_answer(ANSWER)
    assert direct.chat.completions.with_raw_response.create(model="m", messages=HELLO).parse().id == "chatcmpl-1"


@pytest.mark.parametrize("door", DOORS)
def test_a_key_that_is_made_for_each_request(engine, raw, door):
    keys = iter(["first", "second"])
    attempt = engine.attempt()
    client = governed(attempt, door, entry(raw.url))
    held = client._clients[0]
    sdk = openai.OpenAI(api_key=lambda: next(keys), base_url=raw.url, max_retries=0)
    inner = held._oai_client.chat.completions
    if door == "direct":
        inner._given = sdk
    else:
        held._oai_client = sdk.with_options(http_client=attempt.http_client(), max_retries=0)
    for key in ("first", "second"):
        assert outcome(client)["texts"] == ["fine"]
        assert ("authorization", f"Bearer {key}") in request_parts(raw.requests[-1])[1]
    assert client.gate.sent == 0
    sdk.close()

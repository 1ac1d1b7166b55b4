"""Requests and answers as bytes: what is read from them, and what is added."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ag2_parallel.gate.error_body import with_reason
from ag2_parallel.gate.request import ModelRequest
from ag2_parallel.gate.sse import EventStream, begins_events


def request(body, path="/v1/chat/completions", **options):
    return ModelRequest.read(httpx.Request("POST", f"https://host.example{path}", json=body, **options))


def test_a_request_is_read():
    read = request({"model": "m", "stream": True}, headers={"x-key": "1"})
    assert (read.model, read.streamed, read.chat, read.takes_usage, read.metered) == ("m", True, True, True, True)
    assert read.endpoint == "https://host.example"
    assert read.url == "https://host.example/v1/chat/completions"
    assert ("x-key", "1") in read.headers
    assert not {"host", "content-length"} & {name.lower() for name, _ in read.headers}


def test_an_address_keeps_its_port_and_query_and_loses_its_user():
    read = ModelRequest.read(httpx.Request("GET", "http://user:word@[::1]:8080/a%20b?c=d&e=%2F"))
    assert read.endpoint == "http://[::1]:8080"
    assert read.url == "http://[::1]:8080/a%20b?c=d&e=%2F"
    assert not read.metered


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m"},
        {"model": "m", "stream": False},
        {"model": "m", "stream": True, "stream_options": {}},
    ],
)
def test_usage_is_not_asked_for_where_it_is_not_the_gates_to_ask(body):
    assert not request(body).takes_usage


def test_usage_is_asked_for_of_chats_alone():
    assert not request({"model": "m", "stream": True}, "/v1/responses").takes_usage


def test_asking_for_usage_leaves_the_rest_of_the_body_as_it_was():
    asking = request({"model": "m", "stream": True, "messages": []}).body_with_usage()
    assert asking.startswith(b'{"model":"m","stream":true,"messages":[]')
    assert json.loads(asking)["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"'])
def test_a_body_that_is_no_object_is_sent_and_not_understood(content):
    made = httpx.Request(
        "POST", "http://h/v1/chat/completions", content=content, headers={"content-type": "application/json"}
    )
    read = ModelRequest.read(made)
    assert (read.model, read.chat, read.streamed, read.body) == (None, False, False, content)
    assert read.estimated_tokens() == 0


def test_a_form_is_not_parsed():
    read = ModelRequest.read(httpx.Request("POST", "http://h/v1/audio", data={"model": "m"}))
    assert (read.model, read.metered) == (None, True)


def test_an_estimate_counts_texts_and_no_images():
    parts = [
        {"type": "text", "text": "x" * 400},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}},
    ]
    assert 100 <= request({"model": "m", "messages": [{"role": "user", "content": parts}]}).estimated_tokens() < 120


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "slow"}}, ("error", "message")),
        ({"error": "slow"}, ("error",)),
        ({"message": "slow"}, ("message",)),
        ({"detail": "slow"}, ("detail",)),
    ],
)
def test_a_reason_is_added_to_the_message(body, message):
    told = json.loads(with_reason(json.dumps(body).encode(), "why"))
    for key in message:
        told = told[key]
    assert told == "slow (why)"


def test_a_reason_finds_its_place_in_any_body():
    assert json.loads(with_reason(b'{"code": 7}', "why")) == {"code": 7, "message": "(why)"}
    assert with_reason(b"busy\n", "why") == b"busy (why)"
    assert with_reason(b"[1]", "why") == b"[1] (why)"
    assert with_reason(b"", "why") == b" (why)"


TEXT = b'data: {"choices": [{"delta": {"content": "a \\"b\\""}}], "usage": null}\n\n'
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 8}}\n\n'
DONE = b"data: [DONE]\n\n"


def cut_up(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


@pytest.mark.parametrize("strip", [True, False])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_usage_is_found_and_taken_out_however_the_bytes_arrive(strip, end, size):
    events = EventStream(strip_usage=strip)
    data = (TEXT + USAGE + DONE).replace(b"\n", end)
    passed = b"".join(events.feed(part) for part in cut_up(data, size)) + events.finish()
    assert events.usage == {"prompt_tokens": 8}
    assert events.done
    assert events.text_length == len(b'a \\"b\\"')
    assert passed == ((TEXT + DONE) if strip else (TEXT + USAGE + DONE)).replace(b"\n", end)


def test_the_last_usage_counts_and_comes_through_where_it_carries_text():
    both = b'data: {"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 1}}\n\n'
    events = EventStream(strip_usage=True)
    assert events.feed(both) == both
    assert events.usage == {"prompt_tokens": 1}
    assert events.feed(USAGE) == b""
    assert events.usage == {"prompt_tokens": 8}


def test_usage_in_an_unfinished_last_event_counts():
    events = EventStream(strip_usage=True)
    assert events.feed(USAGE.rstrip()) == b""
    assert events.finish() == b""
    assert events.usage == {"prompt_tokens": 8}


def test_the_usage_of_a_responses_event():
    events = EventStream(strip_usage=False)
    events.feed(b'event: response.completed\ndata: {"response": {"usage": {"input_tokens": 3}}}\n\n')
    assert events.usage == {"input_tokens": 3}
    assert events.done


@pytest.mark.parametrize(
    "event", [b'data: {"usage": {"a": \n\n', b'data: [{"usage": {}}]\n\n', b'data: {"x": {"usage": {}}}\n\n']
)
def test_what_only_looks_like_usage_passes(event):
    events = EventStream(strip_usage=True)
    assert events.feed(event) == event
    assert events.usage is None


def test_bytes_without_an_end_of_event_are_not_hoarded():
    events = EventStream(strip_usage=True)
    piece = b"x" * 2**20
    passed = sum(len(events.feed(piece)) for _ in range(20)) + len(events.finish())
    assert passed == 20 * 2**20


@given(st.binary(max_size=200), st.integers(1, 20))
def test_no_byte_is_lost_or_changed(data, size):
    for strip in (True, False):
        events = EventStream(strip_usage=strip)
        assert b"".join(events.feed(part) for part in cut_up(data, size)) + events.finish() == data


@pytest.mark.parametrize(
    ("start", "may"),
    [
        (b"data: {}", True), (b"da", True), (b": ping", True), (b"\xef\xbb\xbf\r\nevent: x", True), (b"\n", True),
        (b"{", False), (b"<html>", False), (b"not json", False), (b"dot", False),
    ],
)  # fmt: skip
def test_how_a_stream_of_events_may_begin(start, may):
    assert begins_events(start) is may

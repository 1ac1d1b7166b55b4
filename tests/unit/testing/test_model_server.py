"""A model server answers over real HTTP as it was told."""

import json
import sys
import threading
import time

import httpx
import pytest

from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall
from ag2_parallel.usage import Usage

HELLO = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello you"}]


def ask(server, messages=HELLO, **fields):
    body = {"model": "m", "messages": messages, **fields}
    return httpx.post(f"{server.base_url}/chat/completions", json=body, trust_env=False, timeout=20)


def said(server, messages=HELLO, **fields):
    return ask(server, messages, **fields).raise_for_status().json()["choices"][0]["message"]["content"]


def events(server, **fields):
    response = ask(server, stream=True, **fields).raise_for_status()
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_it_echoes_the_last_user_message():
    with ModelServer() as server:
        assert said(server) == "echo: hello you"
        parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}, 3]
        assert (
            said(server, [{"role": "user", "content": parts}, {"role": "assistant", "content": None}]) == "echo: a\nb"
        )
        assert said(server, []) == "echo: "
        assert said(server, "no list") == "echo: "


def test_a_completion_has_the_protocol_s_fields():
    with ModelServer("two words") as server:
        body = ask(server).json()
    assert body["id"] == "chatcmpl-0"
    assert body["object"] == "chat.completion"
    assert body["model"] == "m"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"] == {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}


def test_a_sequence_is_used_in_order_and_its_last_answer_repeats():
    with ModelServer(["one", Reply("two"), Fault.status(503), "three"]) as server:
        assert said(server) == "one"
        assert said(server) == "two"
        assert ask(server).status_code == 503
        assert [said(server), said(server)] == ["three", "three"]


def test_scripted_faults_come_on_top_and_use_up_no_answer():
    with ModelServer(["one", "two"]) as server:
        server.fail_next(Fault.status(500), times=2)
        assert [ask(server).status_code for _ in range(2)] == [500, 500]
        assert said(server) == "one"
        server.fail_next(Fault.status(429))
        assert ask(server).status_code == 429
        assert said(server) == "two"


def test_the_reply_can_be_changed_while_it_runs():
    with ModelServer("before") as server:
        assert said(server) == "before"
        server.reply = ["after", "later"]
        assert server.reply == ["after", "later"]
        assert [said(server), said(server)] == ["after", "later"]


def test_a_function_sees_the_request_without_its_key():
    seen = []

    def reply(request):
        seen.append(request)
        return f"to {request.number}"

    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    with ModelServer(reply) as server:
        assert said(server, tools=tools, temperature=0.5) == "to 0"
        body = {"model": "m", "messages": HELLO, "stream": False}
        headers = {"Authorization": "Bearer sk-secret", "X-Api-Key": "secret", "X-Other": "kept"}
        httpx.post(f"{server.url}/openai/x/chat/completions", json=body, headers=headers, trust_env=False)
    first, second = seen
    assert (first.model, first.messages, first.tools, first.temperature) == ("m", HELLO, tools, 0.5)
    assert (first.last_text, first.system_text, first.stream, first.wants_usage) == (
        "hello you",
        "be brief",
        False,
        False,
    )
    assert (first.path, second.path) == ("/v1/chat/completions", "/openai/x/chat/completions")
    assert second.body == body
    assert second.tools == []
    assert second.headers["x-other"] == "kept"
    assert "secret" not in repr(second)


def test_an_async_function_answers_too():
    async def reply(request):
        return Reply(request.last_text.upper())

    class Callable:
        async def __call__(self, request):
            return "awaited"

    with ModelServer(reply) as server:
        assert said(server) == "HELLO YOU"
        server.reply = Callable()
        assert said(server) == "awaited"


def test_a_function_may_block_and_holds_up_nobody_else():
    go = threading.Event()

    def reply(request):
        if request.last_text == "wait":
            assert go.wait(20)
        return request.last_text

    with ModelServer(reply) as server:
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(said(server, [{"role": "user", "content": "wait"}])))
        waiting.start()
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        assert said(server) == "hello you"
        go.set()
        waiting.join(20)
    assert answers == ["wait"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda _: 1 / 0, "the reply function raised ZeroDivisionError: division by zero"),
        (lambda _: next(iter(())), "the reply function raised RuntimeError: StopIteration()"),
        (lambda _: sys.exit(3), "the reply function raised RuntimeError: SystemExit(3)"),
        (lambda _: 7, "a ModelServer cannot answer with int; give a str, Reply, Fault or dict"),
    ],
)
def test_an_error_in_the_reply_function_is_told_to_the_client_and_kept(wrong, message):
    with ModelServer(wrong) as server:
        response = ask(server)
        (seen,) = server.ledger.requests
    assert response.status_code == 500
    assert response.headers["x-should-retry"] == "false"
    assert message in response.json()["error"]["message"]
    assert (seen.status, seen.http_status) == ("fault", 500)
    assert message in seen.error


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(TypeError, match="cannot answer with int"):
        ModelServer(["fine", 3])
    with pytest.raises(TypeError, match="cannot answer with int"):
        ModelServer(3)
    with pytest.raises(ValueError, match="empty sequence"):
        ModelServer([])
    with pytest.raises(ValueError, match="models is empty"):
        ModelServer(models=())
    with pytest.raises(TypeError, match="takes a Fault"):
        ModelServer().fail_next(503)


def test_tool_calls_come_whole_and_in_a_stream():
    calls = [ToolCall("look", {"place": "Zürich now"}), ToolCall("stop", "not json", id="mine")]
    with ModelServer(Reply(tool_calls=calls)) as server:
        choice = ask(server).json()["choices"][0]
        chunks = events(server)
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    whole = choice["message"]["tool_calls"]
    assert [call["id"] for call in whole] == ["call_0_0", "mine"]
    assert json.loads(whole[0]["function"]["arguments"]) == {"place": "Zürich now"}
    assert whole[1] == {"id": "mine", "type": "function", "function": {"name": "stop", "arguments": "not json"}}

    built = {}
    for chunk in chunks:
        for part in chunk["choices"][0]["delta"].get("tool_calls", ()):
            call = built.setdefault(part["index"], {"name": "", "arguments": ""})
            call["id"] = part.get("id", call.get("id"))
            call["name"] += part["function"].get("name", "")
            call["arguments"] += part["function"]["arguments"]
    assert built[0] == {"name": "look", "arguments": '{"place": "Zürich now"}', "id": "call_1_0"}
    assert built[1] == {"name": "stop", "arguments": "not json", "id": "mine"}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("chunk_delay", [0.0, 0.001])
def test_a_stream_says_the_same_text_in_pieces(chunk_delay):
    text = "  a stream,\n\nwith  spaces and ünïcode 🎈 "
    with ModelServer(Reply(text, chunk_delay=chunk_delay)) as server:
        chunks = events(server)
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == text
    assert len(chunks) > 5
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert all("usage" not in chunk for chunk in chunks)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


@pytest.mark.parametrize("chunk_delay", [0.0, 0.001])
def test_a_stream_ends_with_a_usage_block_only_if_asked(chunk_delay):
    with ModelServer(Reply("x", usage=(7, 5), chunk_delay=chunk_delay)) as server:
        *chunks, last = events(server, stream_options={"include_usage": True})
        assert server.ledger.tokens_sent == 12
        events(server, stream_options={"include_usage": False})
        events(server)
        assert server.ledger.tokens_sent == 12
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 12
    assert all(chunk["usage"] is None for chunk in chunks)


def test_a_server_may_give_no_usage_at_all():
    with ModelServer(include_usage=False) as server:
        assert "usage" not in ask(server).json()
        assert all(chunk["choices"] for chunk in events(server, stream_options={"include_usage": True}))
        assert server.ledger.tokens_sent == 0


def test_a_server_may_refuse_stream_options():
    with ModelServer(accepts_stream_options=False) as server:
        response = ask(server, stream=True, stream_options={"include_usage": True})
        assert response.status_code == 400
        assert "stream_options" in response.json()["error"]["message"]
        assert events(server)


@pytest.mark.parametrize(
    "usage",
    [
        (3, 2, 1),
        {"prompt_tokens": 3, "completion_tokens": 2, "cached_tokens": 1},
        {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
        Usage(prompt_tokens=3, completion_tokens=2, cached_tokens=1),
    ],
)
def test_usage_may_be_given_in_any_form(usage):
    with ModelServer(Reply("x", usage=usage)) as server:
        block = ask(server).json()["usage"]
    assert (block["prompt_tokens"], block["completion_tokens"], block["total_tokens"]) == (3, 2, 5)
    assert block["prompt_tokens_details"] == {"cached_tokens": 1}


def test_a_reply_sets_headers_model_and_finish_reason():
    with ModelServer(
        Reply("x", headers={"x-ratelimit-limit-requests": "9"}, model="other", finish_reason="length")
    ) as s:
        response = ask(s)
    assert response.headers["x-ratelimit-limit-requests"] == "9"
    assert response.json()["model"] == "other"
    assert response.json()["choices"][0]["finish_reason"] == "length"


def test_a_raw_body_is_sent_as_it_is_and_cut_into_events_where_it_can_be():
    choices = [{"message": {"content": "a b", "reasoning_content": "hm"}, "finish_reason": "stop"}, {"index": 1}]
    raw = {"id": "x", "choices": choices, "usage": {"prompt_tokens": 2, "completion_tokens": 1}}
    with ModelServer(raw) as server:
        assert ask(server).json() == raw
        chunks = events(server, stream_options={"include_usage": True})
        assert chunks[0]["choices"][0]["delta"]["reasoning_content"] == "hm"
        assert [chunk["choices"][0]["index"] for chunk in chunks[:-1]] == [0, 0, 0, 0, 1, 1]
        assert chunks[-1]["usage"] == raw["usage"]
        assert server.ledger.tokens_sent == 6
        server.reply = {"choices": None, "odd": True}
        assert events(server) == [{"choices": None, "odd": True}]


def test_latency_is_the_server_s_or_the_reply_s_own():
    with ModelServer(latency=60) as server:
        server.reply = Reply("at once", latency=0)
        assert said(server) == "at once"
        server.reply, server.latency = "soon", 0.2
        began = time.monotonic()
        assert said(server) == "soon"
        assert time.monotonic() - began >= 0.2

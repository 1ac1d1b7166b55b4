"""Model calls through the gate: the real SDK against a real server."""

import asyncio
import copy
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest
from gate_harness import HELLO, ask, client, harness, raw_server

from ag2_parallel.errors import ConfigurationError, TaskStopped
from ag2_parallel.testing import ModelServer, Reply, ToolCall


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def raw():
    with raw_server() as server:
        yield server


def test_an_answer_is_the_one_the_server_sent(engine):
    with ModelServer(Reply("fine", usage=(7, 3))) as server:
        attempt = engine.attempt()
        answer = ask(attempt, server)
        assert answer.choices[0].message.content == "fine"
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 3)
        assert server.ledger.requests[0].body["messages"] == HELLO
        assert attempt.calls == 1
        assert attempt.notes.signs >= 1


def test_tool_calls_arrive(engine):
    with ModelServer(Reply(tool_calls=[ToolCall("add", {"a": 1})])) as server:
        tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
        answer = ask(engine.attempt(), server, tools=tools)
        assert json.loads(answer.choices[0].message.tool_calls[0].function.arguments) == {"a": 1}
        assert server.ledger.requests[0].body["tools"] == tools


def test_two_hundred_calls_at_once_share_one_pool(engine):
    all_there = asyncio.Event()

    async def meet(request):
        if request.number == 199:
            all_there.set()
        await all_there.wait()
        return f"echo: {request.last_text}"

    with ModelServer(meet) as server:
        attempts = [engine.attempt() for _ in range(200)]
        with ThreadPoolExecutor(200) as pool:
            answers = list(pool.map(lambda pair: ask(pair[1], server, text=f"{pair[0]}"), enumerate(attempts)))
        assert [answer.choices[0].message.content for answer in answers] == [f"echo: {i}" for i in range(200)]
        assert server.ledger.peak_in_flight == 200
        assert sum(attempt.usage().total_tokens for attempt in attempts) == server.ledger.tokens_sent


def test_connections_are_kept_for_the_next_attempt(engine):
    with ModelServer() as server:
        for _ in range(5):
            ask(engine.attempt(), server)
        assert server.ledger.peak_connections == 1


def test_clients_survive_copying_and_closing(engine):
    with ModelServer("x") as server:
        made = engine.attempt().http_client()
        assert copy.copy(made) is made
        assert copy.deepcopy({"config_list": [{"http_client": made}]})["config_list"][0]["http_client"] is made
        made.close()
        with made:
            pass
        assert isinstance(made, httpx.Client)
        assert not made.is_closed
        assert made.get(f"{server.base_url}/models").json()["data"][0]["id"] == "scripted"


def test_calls_that_are_no_model_calls_are_not_counted(engine):
    with ModelServer("x") as server:
        attempt = engine.attempt()
        assert [model.id for model in client(attempt, server).models.list()] == ["scripted"]
        assert attempt.usage().calls == attempt.usage().unreported_calls == 0


def test_the_check_before_a_call_refuses_it(engine):
    def refuse():
        raise TaskStopped("deadline")

    with ModelServer("x") as server:
        with pytest.raises(TaskStopped) as stopped:
            ask(engine.attempt(check_call=refuse), server)
        assert stopped.value.reason == "deadline"
        assert server.ledger.count == 0


def test_every_header_of_the_sdk_arrives_and_cookies_stay_with_the_attempt(engine):
    with ModelServer(Reply("x", headers={"Set-Cookie": "a=1"})) as server, engine.attempt().http_client() as made:
        first = made.post(f"{server.base_url}/chat/completions", json={"model": "m", "messages": HELLO})
        assert first.headers["set-cookie"] == "a=1"
        assert made.cookies["a"] == "1"
        assert not engine.attempt().http_client().cookies


def test_events_tell_of_the_call_without_its_address_or_key(engine):
    with ModelServer(Reply("x", usage=(5, 1))) as server:
        attempt = engine.attempt()
        ask(attempt, server)
        started, first_byte, finished = attempt.notes.events
        assert (first_byte.type, first_byte.status) == ("ModelCallFirstByte", 200)
        assert (started.type, started.call, started.try_number) == ("ModelCallStarted", 1, 1)
        assert started.model == "scripted"
        assert started.endpoint == server.url
        assert (finished.type, finished.status, finished.usage.total_tokens) == ("ModelCallFinished", "200", 6)
        assert finished.duration > 0


def test_no_event_is_made_where_nobody_listens(engine):
    with ModelServer("x") as server:
        attempt = engine.attempt(observed=False)
        ask(attempt, server)
        assert attempt.notes.events == []


def test_a_compressed_answer_is_handed_over_and_counted_decoded(engine, raw):
    body = gzip.compress(json.dumps({"id": "1", "usage": {"prompt_tokens": 4, "completion_tokens": 2}}).encode())
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    raw.answer = head % len(body) + body
    attempt = engine.attempt()
    answer = attempt.http_client().post(f"{raw.url}/chat/completions", json={"model": "m", "messages": HELLO})
    assert answer.json()["id"] == "1"
    assert "content-encoding" not in answer.headers
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert attempt.usage().total_tokens == 6
    assert b"accept-encoding: gzip, deflate\r\n" in raw.requests[0].lower()


def test_a_large_body_and_a_large_answer_pass(engine):
    with ModelServer("y" * 600_000) as server:
        text = "x" * 2_000_000
        answer = ask(engine.attempt(), server, text=text)
        assert len(answer.choices[0].message.content) == 600_000
        assert server.ledger.requests[0].text == text


def test_user_information_in_an_address_becomes_a_header_and_shows_nowhere(engine):
    with ModelServer("x") as server:
        attempt = engine.attempt()
        address = f"http://user:secret@127.0.0.1:{server.port}/v1/chat/completions"
        assert attempt.http_client().post(address, json={"model": "m", "messages": HELLO}).status_code == 200
        assert "secret" not in repr(attempt.notes.events)


def test_the_cost_is_that_of_the_entrys_price(engine):
    with ModelServer(Reply("x", usage=(1000, 500))) as server:
        attempt = engine.attempt()
        for price in ((1.0, 2.0), (10.0, 20.0)):
            client(attempt, server, price=price).chat.completions.create(model="m", messages=HELLO)
        assert attempt.usage().cost == pytest.approx(2.0 + 20.0)


def test_the_cost_is_the_tables_or_unknown(engine):
    with ModelServer(Reply("x", usage=(1_000_000, 0))) as server:
        attempt = engine.attempt()
        ask(attempt, server, model="gpt-4o-mini")
        assert attempt.usage().cost == pytest.approx(0.15)
        ask(attempt, server, model="nobody-knows-this-model")
        assert attempt.usage().cost is None
        assert attempt.usage().by_model["gpt-4o-mini"].cost == pytest.approx(0.15)


def test_a_long_answer_is_counted_too(engine):
    with ModelServer(Reply("x" * 400_000, usage=(1, 2))) as server:
        attempt = engine.attempt()
        ask(attempt, server)
        assert attempt.usage().total_tokens == 3


def test_a_closed_gate_refuses_calls():
    with ModelServer("x") as server, harness() as engine:
        attempt = engine.attempt()
        made = client(attempt, server)
        engine.on_loop(lambda: None)
        engine.close_gate()
        with pytest.raises(ConfigurationError, match="its run are over"):
            made.chat.completions.create(model="m", messages=HELLO)
        assert server.ledger.count == 0


def test_an_sdk_made_from_the_client_keeps_its_long_timeout(engine):
    with ModelServer("x") as server:
        assert client(engine.attempt(), server).timeout == openai.DEFAULT_TIMEOUT

"""Ways to the server: the user's own client, proxies, TLS, names."""

import base64
import contextlib
import socket
import threading

import httpx
import openai
import pytest
from environment import environment
from gate_harness import HELLO, InThread, harness, http_answer, raw_server

from ag2_parallel.errors import TaskStopped
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.testing import Fault, ModelServer, Reply

BODY = {"model": "m", "messages": HELLO}


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def raw():
    with raw_server() as server:
        yield server


def through(attempt, own, server, **options):
    return openai.OpenAI(
        base_url=server.base_url,
        api_key="sk-test",
        max_retries=0,
        http_client=attempt.http_client(through=own, **options),
    )


# The user's own client


def test_a_users_client_sends_with_all_that_it_adds(engine, raw):
    raw.answer = http_answer({"id": "1", "usage": {"prompt_tokens": 2, "completion_tokens": 1}})
    hooked = []
    with httpx.Client(
        headers={"x-mine": "1"},
        params={"v": "2"},
        cookies={"c": "3"},
        auth=("user", "word"),
        timeout=17,
        event_hooks={"request": [lambda request: hooked.append(request.url.path)]},
    ) as own:
        attempt = engine.attempt()
        made = attempt.http_client(through=own)
        assert made.timeout == httpx.Timeout(17)
        assert made.post(f"{raw.url}/v1/chat/completions", json=BODY).json()["id"] == "1"
        request = raw.requests[0].lower()
        assert b"post /v1/chat/completions?v=2" in request
        assert b"x-mine: 1\r\n" in request
        assert b"cookie: c=3\r\n" in request
        assert b"authorization: basic " + base64.b64encode(b"user:word").lower() in request
        assert hooked == ["/v1/chat/completions"]
        assert attempt.usage().total_tokens == 3


@pytest.mark.parametrize("fault", [Fault.status(429), Fault.reset(), Fault.garbage()])
def test_calls_through_a_users_client_are_tried_again(engine, fault):
    with ModelServer(Reply("fine", usage=(5, 1))) as server, httpx.Client() as own:
        server.fail_next(fault, 2)
        attempt = engine.attempt()
        answer = through(attempt, own, server).chat.completions.create(**BODY)
        assert answer.choices[0].message.content == "fine"
        assert attempt.usage().retried_calls == 2
        assert attempt.usage().total_tokens == server.ledger.tokens_sent


def test_streams_through_a_users_client(engine):
    with ModelServer(Reply("a b c", usage=(5, 3))) as server, httpx.Client() as own:
        attempt = engine.attempt()
        chunks = list(through(attempt, own, server).chat.completions.create(**BODY, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "a b c"
        assert attempt.usage().total_tokens == 8


def test_a_full_pool_of_a_users_client_is_waited_out(engine):
    release = threading.Event()

    def reply(_request):
        release.wait(10)
        return "fine"

    limits = httpx.Limits(max_connections=1)
    with ModelServer(reply) as server, httpx.Client(limits=limits, timeout=httpx.Timeout(10, pool=0.01)) as own:
        busy, refused = engine.attempt(), engine.attempt(RetryPolicy(1000, initial=0.01, factor=1))
        calls = [InThread(through(busy, own, server).chat.completions.create, **BODY)]
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        calls.append(InThread(through(refused, own, server).chat.completions.create, **BODY))
        assert refused.notes.waits_now.wait(10)
        release.set()
        assert [call.join().value.choices[0].message.content for call in calls] == ["fine", "fine"]
        assert refused.notes.named("ModelCallRetrying")[0].reason == "PoolTimeout"
        assert refused.usage().unreported_calls == 0


def test_a_cut_ends_the_waiting_for_a_users_client_and_its_connection_comes_back(engine):
    release = threading.Event()

    def reply(_request):
        release.wait(10)
        return "late"

    with ModelServer(reply) as server, httpx.Client(limits=httpx.Limits(max_connections=1)) as own:
        attempt = engine.attempt()
        call = InThread(through(attempt, own, server).chat.completions.create, **BODY)
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        engine.cut(attempt)
        assert isinstance(call.join().error, TaskStopped)
        assert attempt.usage().unreported_calls == 1
        release.set()
        again = through(engine.attempt(), own, server).chat.completions.create(**BODY)
        assert again.choices[0].message.content == "late"


def test_a_cut_in_the_middle_of_a_users_stream_closes_it_when_its_thread_is_back(engine):
    with ModelServer(Fault.trickle(0.05)) as server, httpx.Client() as own:
        attempt = engine.attempt()
        begun = threading.Event()

        def read():
            for _ in through(attempt, own, server).chat.completions.create(**BODY, stream=True):
                begun.set()

        reading = InThread(read)
        assert begun.wait(10)
        engine.cut(attempt)
        assert isinstance(reading.join().error, TaskStopped)
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)


def test_a_users_client_that_is_closed_says_so(engine):
    own = httpx.Client()
    own.close()
    with ModelServer("x") as server, pytest.raises(RuntimeError, match="client has been closed"):
        engine.attempt().http_client(through=own).post(f"{server.base_url}/chat/completions", json=BODY)


# Names and connections


def test_host_names_are_looked_up(engine, raw):
    raw.answer = http_answer({"id": "1"})
    url = raw.url.replace("127.0.0.1", "localhost")
    assert engine.attempt().http_client().post(f"{url}/chat/completions", json=BODY).is_success
    assert b"host: localhost" in raw.requests[0].lower()


def test_a_host_without_an_address_is_a_connect_error(engine):
    with environment(), pytest.raises(httpx.ConnectError, match=r"no connection to http://nowhere\.invalid"):
        engine.attempt(RetryPolicy(1)).http_client().post("http://nowhere.invalid/chat/completions", json=BODY)


def test_a_connection_that_is_not_accepted_in_time_is_a_connect_timeout(engine):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        address = listener.getsockname()
        for _ in range(4):  # fill the queue of connections that nobody accepts
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        made = engine.attempt(RetryPolicy(1)).http_client()
        with pytest.raises(httpx.ConnectTimeout):
            made.post(
                f"http://127.0.0.1:{address[1]}/chat/completions", json=BODY, timeout=httpx.Timeout(5, connect=0.2)
            )

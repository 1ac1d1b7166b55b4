"""What is tried again, how often, and what the caller gets in the end."""

import socket
import time

import httpx
import openai
import pytest
from gate_harness import HELLO, InThread, ask, client, harness, http_answer, raw_server

from ag2_parallel.policies import RetryPolicy
from ag2_parallel.testing import FakeClock, Fault, ModelServer, Reply


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def raw():
    with raw_server() as server:
        yield server


def causes(error):
    while error is not None:
        yield str(error)
        error = error.__cause__


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.status(429), "HTTP 429"),
        (Fault.status(408), "HTTP 408"),
        (Fault.status(409), "HTTP 409"),
        (Fault.status(500), "HTTP 500"),
        (Fault.status(503), "HTTP 503"),
        (Fault.reset(), "ReadError"),
        (Fault.half_stream(), "RemoteProtocolError"),
        (Fault.garbage(), "an answer that is not JSON"),
        (Fault.garbage("[1, 2]"), "an answer that is not JSON"),
        (Fault.status(400, headers={"x-should-retry": "true"}), "HTTP 400"),
    ],
)
def test_what_can_go_away_is_tried_again(engine, fault, reason):
    with ModelServer(Reply("fine", usage=(5, 1))) as server:
        server.fail_next(fault, 2)
        attempt = engine.attempt()
        assert ask(attempt, server).choices[0].message.content == "fine"
        assert server.ledger.count == 3
        bodies = [request.body for request in server.ledger.requests]
        assert bodies[0] == bodies[1] == bodies[2]
        assert [event.reason for event in attempt.notes.named("ModelCallRetrying")] == [reason] * 2
        assert [event.try_number for event in attempt.notes.named("ModelCallStarted")] == [1, 2, 3]
        usage = attempt.usage()
        assert (usage.calls, usage.retried_calls, usage.total_tokens) == (1, 2, server.ledger.tokens_sent)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.status(400), openai.BadRequestError),
        (Fault.status(401), openai.AuthenticationError),
        (Fault.status(404), openai.NotFoundError),
        (Fault.status(429, code="insufficient_quota"), openai.RateLimitError),
        (Fault.status(503, headers={"x-should-retry": "false"}), openai.InternalServerError),
    ],
)
def test_what_cannot_go_away_is_asked_once(engine, fault, error):
    with ModelServer(fault) as server:
        with pytest.raises(error):
            ask(engine.attempt(), server)
        assert server.ledger.count == 1


def test_a_used_up_policy_hands_over_the_last_answer_as_it_is(engine):
    with ModelServer(Fault.status(429, message="slow down", headers={"x-request-id": "r1"})) as server:
        attempt = engine.attempt()
        with pytest.raises(openai.RateLimitError) as failed:
            ask(attempt, server)
        assert server.ledger.count == 5
        assert failed.value.response.headers["x-request-id"] == "r1"
        assert failed.value.body["message"] == "slow down"
        assert attempt.usage().retried_calls == 4
        assert attempt.usage().calls == attempt.usage().unreported_calls == 0
        assert attempt.usage().cost == 0
        assert attempt.notes.named("ModelCallFinished")[0].status == "429"


def test_an_entry_that_others_follow_gives_up_after_two_tries(engine):
    with ModelServer(Fault.status(500)) as server:
        made = client(engine.attempt(), server, last_entry=False)
        with pytest.raises(openai.InternalServerError):
            made.chat.completions.create(model="m", messages=HELLO)
        assert server.ledger.count == 2


def test_garbage_to_the_end_says_what_the_server_sent(engine):
    with ModelServer(Fault.garbage("<html>key sk-abcdefghijk1234567890ABCD gateway</html>", "text/html")) as server:
        attempt = engine.attempt()
        with pytest.raises(openai.APIConnectionError) as failed:
            ask(attempt, server)
        said = " ".join(causes(failed.value))
        assert "not a JSON object (text/html, 53 bytes): '<html>key *** gateway" in said
        assert "tried 5 times" in said
        assert attempt.usage().unreported_calls == server.ledger.count == 5
        assert attempt.usage().estimated_tokens > 0


def test_a_broken_connection_to_the_end_is_a_connection_error(engine):
    with ModelServer(Fault.reset()) as server:
        with pytest.raises(openai.APIConnectionError) as failed:
            ask(engine.attempt(RetryPolicy(3, initial=0.001)), server)
        assert isinstance(failed.value.__cause__, httpx.ReadError)
        assert server.ledger.count == 3


def test_where_nobody_listens_it_is_a_connect_error_and_nothing_was_used(engine):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    attempt = engine.attempt()
    made = openai.OpenAI(
        base_url=f"http://127.0.0.1:{port}", api_key="x", max_retries=0, http_client=attempt.http_client()
    )
    with pytest.raises(openai.APIConnectionError) as failed:
        made.chat.completions.create(model="m", messages=HELLO)
    assert isinstance(failed.value.__cause__, httpx.ConnectError)
    assert f"no connection to http://127.0.0.1:{port}" in str(failed.value.__cause__)
    assert "tried 5 times" in str(failed.value.__cause__)
    usage = attempt.usage()
    assert (usage.retried_calls, usage.unreported_calls, usage.cost) == (4, 0, 0)


def test_a_read_timeout_of_the_request_is_kept_and_tried_again(engine):
    with ModelServer(Reply("fine")) as server:
        server.fail_next(Fault.hang(), 1)
        attempt = engine.attempt()
        made = client(attempt, server).with_options(timeout=httpx.Timeout(5, read=0.3))
        assert made.chat.completions.create(model="m", messages=HELLO).choices[0].message.content == "fine"
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        assert attempt.usage().unreported_calls == 1
        assert attempt.notes.named("ModelCallRetrying")[0].reason == "ReadTimeout"


def test_a_read_timeout_to_the_end_is_a_timeout_error(engine):
    with ModelServer(Fault.hang()) as server:
        made = client(engine.attempt(RetryPolicy(1)), server).with_options(timeout=0.2)
        with pytest.raises(openai.APITimeoutError) as failed:
            made.chat.completions.create(model="m", messages=HELLO)
        assert isinstance(failed.value.__cause__, httpx.ReadTimeout)


def test_a_wait_past_the_deadline_fails_at_once_and_says_so(engine):
    with ModelServer(Fault.status(429, retry_after=86400, message="slow down")) as server:
        attempt = engine.attempt(remaining=lambda: 58.2)
        with pytest.raises(openai.RateLimitError) as failed:
            ask(attempt, server)
        assert "slow down (not tried again: the server asks to wait 86400 s and the task has 58 s left)" in str(
            failed.value
        )
        assert failed.value.response.headers["retry-after"] == "86400"
        assert server.ledger.count == 1
        assert attempt.notes.waits == []


def test_a_day_is_not_waited_for_without_a_deadline_either(engine):
    refused = Fault.status(429, retry_after=86400)
    with ModelServer(refused) as server, pytest.raises(openai.RateLimitError, match="at most 3600 s are waited for"):
        ask(engine.attempt(), server)


def test_a_broken_connection_near_the_deadline_says_why_it_was_not_tried_again(engine):
    with ModelServer(Fault.reset()) as server:
        slow = RetryPolicy(5, initial=9, jitter=False)
        with pytest.raises(openai.APIConnectionError) as failed:
            ask(engine.attempt(slow, remaining=lambda: 2.0), server)
        assert "not tried again: the next try would be in 9.0 s and the task has 2 s left" in str(
            failed.value.__cause__
        )


AT_NULL, AT_ONE = "Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:01 GMT"


@pytest.mark.parametrize(
    "headers", [{"retry-after-ms": "150"}, {"retry-after": "0.15"}, {"retry-after": AT_ONE, "date": AT_NULL}]
)
def test_the_servers_wish_is_waited_for(headers):
    with harness(FakeClock()) as engine, ModelServer("fine") as server:
        server.fail_next(Fault.status(429, headers=headers))
        attempt = engine.attempt()
        ask(attempt, server)
        first, second = server.ledger.requests
        assert second.at - first.at >= 0.15
        assert attempt.notes.named("ModelCallRetrying")[0].delay >= 0.15
        assert attempt.notes.waits == [True, False]


def test_waits_are_counted_once_however_many_calls_wait(engine):
    with ModelServer("fine") as server:
        server.fail_next(Fault.status(429, headers={"retry-after-ms": "300"}), 3)
        attempt = engine.attempt()
        began = time.monotonic()
        calls = [InThread(ask, attempt, server) for _ in range(3)]
        for call in calls:
            assert call.join().error is None
        assert 0.3 <= attempt.waited() <= time.monotonic() - began
        assert attempt.notes.waits.count(True) == attempt.notes.waits.count(False)


def test_a_policy_may_name_the_kinds_that_it_is_for(engine):
    with ModelServer(Fault.status(500)) as server:
        with pytest.raises(openai.InternalServerError):
            ask(engine.attempt(RetryPolicy(5, initial=0.001, on=["rate_limit"])), server)
        assert server.ledger.count == 1


def test_a_policys_own_function_decides_off_the_loop(engine):
    seen = []

    def judge(error):
        seen.append((error.kind, error.status_code, error.retryable))
        return len(seen) < 2

    with ModelServer(Fault.status(500)) as server:
        with pytest.raises(openai.InternalServerError):
            ask(engine.attempt(RetryPolicy(5, initial=0.001, on=judge)), server)
        assert server.ledger.count == 2
        assert seen == [("provider", 500, True)] * 2


def test_a_policys_function_that_fails_is_the_callers_error(engine):
    def judge(_error):
        raise LookupError("mine")

    made = engine.attempt(RetryPolicy(5, on=judge)).http_client()
    with ModelServer(Fault.reset()) as server, pytest.raises(LookupError, match="mine"):
        made.post(f"{server.base_url}/chat/completions", json={"model": "m"})


def test_an_idle_connection_that_the_server_has_closed_is_no_failure(engine, raw):
    answer = http_answer({"id": "1"})
    raw.answer = lambda _request, number: None if number == 2 else answer
    attempt = engine.attempt()
    made = attempt.http_client()
    for _ in range(2):
        assert made.post(f"{raw.url}/chat/completions", json={"model": "m"}).json() == {"id": "1"}
    assert len(raw.requests) == 3
    assert raw.requests[1] == raw.requests[2]
    assert attempt.usage().retried_calls == 0


def test_what_is_no_http_at_all_is_a_protocol_error(engine, raw):
    raw.answer = b"SSH-2.0-OpenSSH_9.9\r\n\r\n"
    attempt = engine.attempt(RetryPolicy(1))
    with pytest.raises(httpx.RemoteProtocolError, match="does not speak HTTP properly"):
        attempt.http_client().post(f"{raw.url}/chat/completions", json={"model": "m"})


def test_a_request_that_cannot_be_sent_is_not_sent_again(engine):
    attempt = engine.attempt()
    with pytest.raises(httpx.UnsupportedProtocol):
        attempt.http_client().post("ftp://127.0.0.1/chat/completions", json={"model": "m"})
    assert attempt.usage().retried_calls == 0

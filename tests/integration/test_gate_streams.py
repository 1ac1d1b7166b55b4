"""Streamed answers through the gate."""

import gc
import threading

import httpx
import openai
import pytest
from gate_harness import HELLO, InThread, ask, client, harness, http_answer, raw_server

from ag2_parallel.errors import TaskStopped
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

USAGE_EVENT = b'data: {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 2}}\n\n'
TEXT_EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "hello there"}}]}\n\n'


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def raw():
    with raw_server() as server:
        yield server


def text(chunks):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def sse(*events, status=200):
    return http_answer(b"".join(events), status=status, content_type="text/event-stream")


def test_a_stream_arrives_and_its_usage_is_counted_though_nobody_asked(engine):
    with ModelServer(Reply("a b c d", usage=(9, 4), chunk_delay=0.02)) as server:
        attempt = engine.attempt()
        chunks = list(ask(attempt, server, stream=True))
        assert text(chunks) == "a b c d"
        assert all(chunk.choices for chunk in chunks), "the client did not ask for a chunk without choices"
        assert server.ledger.requests[0].body["stream_options"] == {"include_usage": True}
        assert attempt.usage().total_tokens == server.ledger.tokens_sent == 13
        assert attempt.notes.signs >= 3


def test_a_client_that_asks_for_usage_gets_it(engine):
    with ModelServer(Reply("a b", usage=(9, 2))) as server:
        attempt = engine.attempt()
        chunks = list(ask(attempt, server, stream=True, stream_options={"include_usage": True}))
        assert chunks[-1].usage.total_tokens == 11
        assert attempt.usage().total_tokens == 11


def test_streamed_tool_calls_arrive(engine):
    with ModelServer(Reply(tool_calls=[ToolCall("add", {"a": 1})])) as server:
        chunks = list(ask(engine.attempt(), server, stream=True))
        calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
        assert "".join(call.function.arguments or "" for call in calls) == '{"a": 1}'


def test_an_endpoint_that_refuses_the_question_is_asked_without_it_and_remembered(engine):
    with ModelServer("a b c", accepts_stream_options=False) as server:
        attempt = engine.attempt()
        assert text(ask(attempt, server, stream=True)) == "a b c"
        assert text(ask(engine.attempt(), server, stream=True)) == "a b c"
        assert ["stream_options" in request.body for request in server.ledger.requests] == [True, False, False]
        usage = attempt.usage()
        assert (usage.calls, usage.retried_calls, usage.unreported_calls) == (1, 1, 1)
        assert usage.estimated_tokens == (len("hellouserscripted") // 4) + (len("a b c") // 4)


def test_an_endpoint_that_does_not_say_why_it_refuses_is_remembered_once_the_original_works(engine, raw):
    refusal = http_answer({"detail": "extra fields"}, status=422)
    raw.answer = lambda request, _number: refusal if b"stream_options" in request else sse(TEXT_EVENT)
    for _ in range(2):
        assert text(ask(engine.attempt(), raw, stream=True)) == "hello there"
    assert len(raw.requests) == 3


def test_a_request_that_is_bad_in_itself_is_refused_with_its_own_error_and_nothing_is_remembered(engine, raw):
    raw.answer = http_answer({"error": {"message": "no such model"}}, status=400)
    for _ in range(2):
        with pytest.raises(openai.BadRequestError, match="no such model"):
            ask(engine.attempt(), raw, stream=True)
    assert [b"stream_options" in request for request in raw.requests] == [True, False, True, False]


def test_a_stream_that_breaks_after_its_first_byte_is_not_tried_again(engine):
    with ModelServer(Fault.half_stream()) as server:
        attempt = engine.attempt()
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError, openai.APIConnectionError)):
            list(ask(attempt, server, stream=True))
        assert server.ledger.count == 1
        assert attempt.usage().unreported_calls == 1
        assert attempt.usage().calls == 0


@pytest.mark.parametrize("fault", [Fault.status(503), Fault.reset()])
def test_a_stream_that_breaks_before_its_first_byte_is_tried_again(engine, fault):
    with ModelServer("a b") as server:
        server.fail_next(fault, 2)
        assert text(ask(engine.attempt(), server, stream=True)) == "a b"
        assert server.ledger.count == 3


def test_an_empty_stream_is_tried_again(engine, raw):
    raw.answer = lambda _request, number: sse() if number == 1 else sse(TEXT_EVENT)
    assert text(ask(engine.attempt(), raw, stream=True)) == "hello there"
    assert len(raw.requests) == 2


def test_a_finished_stream_gives_its_connection_back(engine):
    with ModelServer("a b") as server:
        for _ in range(3):
            assert text(ask(engine.attempt(), server, stream=True)) == "a b"
        assert server.ledger.peak_connections == 1


def test_closing_a_stream_early_closes_the_connection(engine):
    with ModelServer(Fault.trickle(0.02)) as server:
        attempt = engine.attempt()
        with ask(attempt, server, stream=True) as stream:
            next(iter(stream))
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        assert attempt.usage().unreported_calls == 1
        assert not attempt.was_cut


def test_a_stream_that_is_dropped_half_read_closes_the_connection(engine):
    with ModelServer(Fault.trickle(0.02)) as server:
        response = (
            engine.attempt()
            .http_client()
            .send(
                httpx.Request(
                    "POST",
                    f"{server.base_url}/chat/completions",
                    json={"model": "m", "messages": HELLO, "stream": True},
                ),
                stream=True,
            )
        )
        next(response.iter_raw())
        del response
        gc.collect()
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)


def test_a_cut_ends_a_stream_in_its_middle(engine):
    with ModelServer(Fault.trickle(0.02)) as server:
        attempt = engine.attempt()
        begun = threading.Event()

        def read():
            for _ in ask(attempt, server, stream=True):
                begun.set()

        reading = InThread(read)
        assert begun.wait(10)
        engine.cut(attempt, "idle")
        assert isinstance(reading.join().error, TaskStopped)
        assert reading.error.reason == "idle"
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        assert attempt.was_cut
        assert attempt.usage().unreported_calls == 1


def test_a_long_stream_arrives_whole(engine, raw):
    event = b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n' % (b"x" * 20_000)
    raw.answer = sse(*[event] * 200, USAGE_EVENT, b"data: [DONE]\n\n")
    attempt = engine.attempt()
    assert len(text(ask(attempt, raw, stream=True))) == 200 * 20_000
    assert attempt.usage().total_tokens == 10


def test_plain_json_in_answer_to_a_stream_request_is_passed_on_and_counted(engine, raw):
    raw.answer = http_answer({"id": "1", "choices": [{}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
    attempt = engine.attempt()
    answer = attempt.http_client().post(f"{raw.url}/chat/completions", json={"model": "m", "stream": True})
    assert answer.json()["id"] == "1"
    assert attempt.usage().total_tokens == 4


@pytest.mark.parametrize(
    "page", [Fault.garbage(), Fault.garbage("<html>busy</html>", "text/html")], ids=["text", "page"]
)
def test_what_is_no_stream_and_no_json_is_tried_again(engine, page):
    with ModelServer([page, Reply("a b", usage=(9, 2))]) as server:
        attempt = engine.attempt()
        assert text(ask(attempt, server, stream=True)) == "a b"
        assert server.ledger.count == 2
        assert (attempt.usage().total_tokens, attempt.usage().unreported_calls) == (11, 1)


def test_a_stream_of_another_content_type_is_a_stream(engine, raw):
    raw.answer = http_answer(TEXT_EVENT + USAGE_EVENT + b"data: [DONE]\n\n", content_type="text/plain")
    assert text(ask(engine.attempt(), raw, stream=True)) == "hello there"


def test_an_error_in_answer_to_a_stream_request_is_the_sdks_error(engine):
    with ModelServer(Fault.status(401)) as server, pytest.raises(openai.AuthenticationError):
        client(engine.attempt(), server).chat.completions.create(model="m", messages=HELLO, stream=True)

"""A task that stops: its calls end at once, wherever they are, and the server sees it."""

import asyncio
import os
import signal
import threading
import time

import openai
import pytest
from gate_harness import FAST, HELLO, InThread, Notes, ask, client, harness, spawn

from ag2_parallel.core.clock import SystemClock
from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.gate import Gate
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.redaction import Redactor
from ag2_parallel.testing import Fault, ModelServer, Reply


def wait_until(true):
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def engine():
    with harness() as made:
        yield made


def test_a_cut_ends_a_waiting_call_and_the_server_sees_the_disconnect(engine):
    with ModelServer(Fault.hang()) as server:
        attempt = engine.attempt()
        call = InThread(ask, attempt, server, text="x" * 400)
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        engine.cut(attempt, "deadline")
        assert isinstance(call.join().error, TaskStopped)
        assert call.error.reason == "deadline"
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        assert attempt.was_cut
        usage = attempt.usage()
        assert (usage.calls, usage.unreported_calls, usage.retried_calls) == (0, 1, 0)
        assert usage.estimated_tokens > 100
        assert attempt.notes.named("ModelCallFinished")[0].status == "cut"


def test_after_a_cut_every_new_call_is_refused(engine):
    with ModelServer("x") as server:
        attempt = engine.attempt()
        engine.cut(attempt, "cancelled")
        engine.cut(attempt, "deadline")
        with pytest.raises(TaskStopped) as stopped:
            ask(attempt, server)
        assert stopped.value.reason == "cancelled"
        assert server.ledger.count == 0
        assert not attempt.was_cut, "nothing was in flight"
        assert attempt.usage().unreported_calls == 0


def test_a_cut_ends_the_wait_for_the_next_try(engine):
    with ModelServer(Fault.status(429, retry_after=600)) as server:
        attempt = engine.attempt()
        call = InThread(ask, attempt, server)
        assert attempt.notes.waits_now.wait(10)
        engine.cut(attempt)
        assert isinstance(call.join().error, TaskStopped)
        assert server.ledger.count == 1
        assert attempt.waited() < 60
        assert attempt.notes.waits == [True, False]
        assert attempt.usage().unreported_calls == 0, "an error answer is not charged for"


def test_a_call_that_is_cut_before_its_first_step_is_as_good_as_any(engine):
    with ModelServer("x") as server:
        attempt = engine.attempt()
        handed_over = threading.Event()
        go_on = threading.Event()

        def busy():
            handed_over.set()
            go_on.wait(10)

        engine.loop.call_soon_threadsafe(busy)
        assert handed_over.wait(10)
        call = InThread(ask, attempt, server)
        wait_until(lambda: attempt.calls == 1)
        engine.loop.call_soon_threadsafe(attempt.cut, "deadline")
        go_on.set()
        assert isinstance(call.join().error, TaskStopped)
        engine.tasks()
        assert server.ledger.count == attempt.usage().unreported_calls == 0
        assert engine.gate._calls == set()


def test_a_cut_leaves_other_attempts_alone(engine):
    with ModelServer(Reply("fine", latency=0.3)) as server:
        cut, spared = engine.attempt(), engine.attempt()
        calls = [InThread(ask, cut, server), InThread(ask, spared, server)]
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 2)
        engine.cut(cut)
        assert isinstance(calls[0].join().error, TaskStopped)
        assert calls[1].join().value.choices[0].message.content == "fine"


def test_a_hundred_calls_of_an_attempt_are_cut_together(engine):
    with ModelServer(Fault.hang()) as server:
        attempt = engine.attempt()
        calls = [InThread(ask, attempt, server) for _ in range(100)]
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 100, 30)
        engine.cut(attempt)
        assert {type(call.join().error) for call in calls} == {TaskStopped}
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 100)
        assert attempt.usage().unreported_calls == attempt.calls == 100


def test_an_attempt_that_only_read_answers_to_their_end_was_not_cut(engine):
    with ModelServer("x") as server:
        attempt = engine.attempt()
        ask(attempt, server)
        list(ask(attempt, server, stream=True))
        engine.cut(attempt)
        assert not attempt.was_cut


def test_an_interrupted_caller_leaves_no_call_behind(engine):
    with ModelServer(Fault.hang()) as server:
        attempt = engine.attempt()

        def interrupt():
            server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
            os.kill(os.getpid(), signal.SIGINT)

        spawn(interrupt)
        with pytest.raises(KeyboardInterrupt):
            ask(attempt, server)
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        assert not attempt.was_cut


def test_closing_the_gate_ends_what_is_left():
    with ModelServer(Fault.hang()) as server:
        with harness() as engine:
            attempt = engine.attempt()
            call = InThread(ask, attempt, server)
            streams = InThread(lambda: list(ask(attempt, server, stream=True)))
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 2)
            engine.close_gate()
            assert call.join().error.reason == "cancelled"
            assert isinstance(streams.join().error, TaskStopped)
        assert server.ledger.wait_for(lambda ledger: ledger.connections == 0)


def test_a_gate_whose_loop_has_gone_refuses():
    loop = asyncio.new_event_loop()
    gate = Gate(loop, loop.call_soon_threadsafe, spawn, SystemClock())
    attempt = gate.open_attempt(retry=RetryPolicy(1), redactor=Redactor(), owner=Notes())
    loop.close()
    with pytest.raises(TaskStopped):
        attempt.http_client().get("http://127.0.0.1:9")


def test_a_stream_outlives_its_engine_quietly():
    with ModelServer(Fault.trickle(0.02)) as server:
        with harness() as engine:
            stream = ask(engine.attempt(), server, stream=True)
            next(iter(stream))
        with pytest.raises(TaskStopped):
            list(stream)
        stream.close()


def test_a_callback_that_fails_reaches_the_caller_and_not_the_void(engine):
    def broken():
        raise LookupError("no such attempt")

    made = engine.attempt(FAST, remaining=broken).http_client()
    with ModelServer(Fault.status(500)) as server, pytest.raises(LookupError, match="no such attempt"):
        made.post(f"{server.base_url}/chat/completions", json={"model": "m"})


def test_a_run_of_calls_leaves_no_descriptor_open():
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    with ModelServer("x") as server:
        before = descriptors()
        with harness() as engine:
            for _ in range(3):
                ask(engine.attempt(), server)
        wait_until(lambda: descriptors() <= before)  # the server closes its end on a thread of its own


def test_an_error_is_the_sdks_own_where_a_wrapper_asks_for_raw_answers(engine):
    with ModelServer(Fault.status(429)) as server:
        made = client(engine.attempt(RetryPolicy(1)), server)
        with pytest.raises(openai.RateLimitError):
            made.chat.completions.with_raw_response.create(model="m", messages=HELLO)

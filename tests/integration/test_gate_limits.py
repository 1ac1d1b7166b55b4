"""Limits before a real server: in the queue, in the events, in the account of waiting."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import openai
import pytest
from gate_harness import InThread, ask, client, harness

from ag2_parallel import ParallelAgentRunner, ParallelTask, RateLimit
from ag2_parallel.errors import TaskStopped
from ag2_parallel.events import ModelCallStarted
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.testing import Fault, ModelServer, RecordingObserver, Reply
from ag2_parallel.workers.attempt import CURRENT

CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def engine():
    with harness() as made:
        yield made


def limited(*limits, **options):
    return CallLimits(limits, **options)


def post(server, body=CHAT):
    """One bare call from inside a task."""
    return CURRENT.get().gate.http_client().post(f"{server.base_url}/chat/completions", json=body)


def run_calls(server, count, *, calls=1, **options):
    def work(_ctx):
        return [post(server).status_code for _ in range(calls)]

    tasks = [ParallelTask(f"t{number}", run=work) for number in range(count)]
    return ParallelAgentRunner(max_workers=count, progress=False, **options).run(tasks)


def test_calls_at_once_are_limited():
    with ModelServer(Reply("x", latency=0.02)) as server:
        results = run_calls(server, 20, rate_limits=[RateLimit(concurrent=3)])
        assert results.ok
        assert server.ledger.peak_in_flight == 3


def test_requests_are_spent_evenly_and_the_waiting_is_accounted():
    seen = RecordingObserver()
    with ModelServer("x") as server:
        results = run_calls(server, 20, rate_limits=[RateLimit(requests=50, per=1)], observers=[seen])
        # When each was sent: the first ones have connections to open, and come to the server late and all together.
        sent = sorted(event.at.timestamp() for event in seen.of(ModelCallStarted))
        assert len(sent) == 20
        assert sent[-1] - sent[0] >= 13 / 50
        assert max(sum(t <= u < t + 0.1 for u in sent) for t in sent) <= 50 * 0.2 + 2
        assert server.ledger.count == 20
        for result in results.values():
            assert 0 <= result.waited <= result.duration
        (name,) = [each for each in results.metrics["waited_by_limit"] if each.startswith("50 requests")]
        assert name == "50 requests in 1 s"
        assert results.metrics["waited_by_limit"][name] == pytest.approx(results.metrics["waited"], rel=0.3)


def test_limits_hold_for_the_models_endpoints_and_groups_they_name(engine):
    with ModelServer(Reply("x", latency=0.3)) as server:
        host = server.url.removeprefix("http://")
        limits = limited(
            RateLimit(concurrent=1, model="big-*"),
            RateLimit(concurrent=1, endpoint=host, group="night"),
            RateLimit(concurrent=1, endpoint="https://*"),
        )
        by_group = {group: engine.attempt(limits=limits, group=group) for group in (None, "night")}
        calls = [
            InThread(ask, by_group[group], server, model=model)
            for group, model in [(None, "big-1"), (None, "big-2"), (None, "small"), (None, "small"), ("night", "tiny")]
        ]
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 4)
        assert [call.join().error for call in calls] == [None] * 5
        assert server.ledger.peak_in_flight == 4


def test_a_call_that_cannot_go_in_time_fails_at_once_and_says_why(engine):
    with ModelServer(Reply("x", latency=0.01)) as server:
        attempt = engine.attempt(remaining=lambda: 20.0, limits=limited(RateLimit(requests=1, per=60)))
        ask(attempt, server)
        with pytest.raises(openai.APIConnectionError) as caught:
            ask(attempt, server)
        cause = caught.value.__cause__
        assert cause.kind == "rate_limit"
        assert "1 requests in 60 s" in str(cause)
        assert "its task has 20.0 s left" in str(cause)
        assert attempt.notes.named("ModelCallRefused")[0].reason == str(cause)
        assert server.ledger.count == 1


def test_the_result_of_a_task_that_was_refused_is_of_kind_rate_limit():
    with ModelServer("x") as server:
        options = {"rate_limits": [RateLimit(requests_per_minute=1)], "timeout": 10, "llm_config": server.llm_config()}
        results = ParallelAgentRunner(progress=False, **options).run(
            [ParallelTask("a", "hello"), ParallelTask("b", "hello")]
        )
        (failed,) = results.failed
        assert (failed.error.kind, server.ledger.count) == ("rate_limit", 1)
        assert "1 requests in 60 s" in failed.error.message
        assert str(failed.error).startswith("NotAdmittedError: the call was not sent: ")


def test_a_cut_waiter_gives_its_place_back(engine):
    with ModelServer(Reply("x", latency=0.2)) as server:
        limits = limited(RateLimit(concurrent=1))
        busy, cut, patient = (engine.attempt(limits=limits) for _ in range(3))
        first = InThread(ask, busy, server)
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        second = InThread(ask, cut, server)
        assert cut.notes.waits_now.wait(5)
        third = InThread(ask, patient, server)
        assert patient.notes.waits_now.wait(5)
        engine.cut(cut)
        assert isinstance(second.join().error, TaskStopped)
        assert first.join().error is third.join().error is None
        assert server.ledger.count == 2
        assert cut.notes.waits == [True, False]
        assert [event.reason for event in cut.notes.named("ModelCallCut")] == ["deadline"]


def test_a_higher_priority_goes_first(engine):
    with ModelServer(Reply("x", latency=0.1)) as server:
        limits = limited(RateLimit(concurrent=1))
        first = InThread(ask, engine.attempt(limits=limits), server)
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        calls = []
        for priority in (0, 1, 5):
            attempt = engine.attempt(limits=limits, priority=priority)
            calls.append(InThread(ask, attempt, server, text=str(priority)))
            assert attempt.notes.waits_now.wait(5)
        for call in (first, *calls):
            assert call.join().error is None
        assert [request.text for request in server.ledger.requests] == ["hello", "5", "1", "0"]


def test_tokens_reserved_and_not_used_are_given_back(engine):
    with ModelServer(Reply("x", usage=(5, 5))) as server:
        attempt = engine.attempt(limits=limited(RateLimit(tokens=100, per=1)))
        for _ in range(4):
            ask(attempt, server, max_tokens=5000)  # 50 seconds' worth each
        assert attempt.waited() < 5


def test_tokens_used_beyond_the_reservation_are_owed(engine):
    with ModelServer(Reply("x", usage=(10, 390))) as server:
        attempt = engine.attempt(limits=limited(RateLimit(tokens=1000, per=1)))
        ask(attempt, server, max_tokens=1)
        ask(attempt, server, max_tokens=1)
        first, second = (request.at for request in server.ledger.requests)
        assert second - first >= 0.25


def test_calls_go_while_other_tasks_are_still_being_started():
    seen = []
    with ModelServer("x") as server:
        assert run_calls(server, 300, observers=[lambda event: seen.append(type(event).__name__)]).ok
    started = [place for place, name in enumerate(seen) if name == "AttemptStarted"]
    assert len(started) == 300
    assert seen.index("ModelCallStarted") < started[-1]


def test_limits_outlive_a_run_of_a_kept_runner():
    with ModelServer("x") as server:
        limit = RateLimit(requests=2, per=1)
        with ParallelAgentRunner(rate_limits=limit, progress=False) as runner:
            for name in "ab":
                runner.run([ParallelTask(name, run=lambda _ctx: post(server).status_code)])
        first, second = (request.at for request in server.ledger.requests)
        assert second - first >= 0.35


def test_limits_are_read_from_the_headers():
    headers = {"x-ratelimit-limit-requests": "3000", "x-ratelimit-remaining-requests": "10"}
    with ModelServer(Reply("x", headers=headers)) as server:
        assert run_calls(server, 12, rate_limits="auto").ok
        times = sorted(request.at for request in server.ledger.requests)
        assert times[-1] - times[0] >= 5 / 50
        assert times[1] - times[0] > 0, "one call went ahead"


def test_a_pause_holds_for_all_tasks_of_the_endpoint(engine):
    with ModelServer("fine") as server:
        server.fail_next(Fault.status(429, retry_after="0.5"))
        refused, other = engine.attempt(), engine.attempt()
        first = InThread(ask, refused, server)
        assert server.ledger.wait_for(lambda ledger: ledger.faults == 1)
        assert refused.notes.waits_now.wait(5)
        ask(other, server)
        assert first.join().error is None
        early, *late = (request.at for request in server.ledger.requests)
        assert min(late) - early >= 0.45
        assert other.waited() > 0.2
        (throttled,) = refused.notes.named("ModelCallThrottled")
        assert throttled.pause == pytest.approx(0.5, abs=0.1)


def test_a_pause_that_is_too_long_for_a_task_fails_it_at_once(engine):
    with ModelServer("fine") as server:
        server.fail_next(Fault.status(429, retry_after=600))
        with pytest.raises(openai.RateLimitError):
            ask(engine.attempt(remaining=lambda: 60.0), server)
        with pytest.raises(openai.APIConnectionError) as caught:
            ask(engine.attempt(remaining=lambda: 60.0), server)
        assert caught.value.__cause__.kind == "rate_limit"
        assert server.ledger.count == 1


def test_another_key_is_not_paused(engine):
    with ModelServer("fine") as server:
        server.fail_next(Fault.status(429, retry_after=600))
        with pytest.raises(openai.RateLimitError):
            ask(engine.attempt(remaining=lambda: 60.0), server)
        other = openai.OpenAI(
            base_url=server.base_url, api_key="sk-other", max_retries=0, http_client=engine.attempt().http_client()
        )
        assert other.chat.completions.create(**CHAT).choices[0].message.content == "fine"


def test_a_stream_holds_its_place_to_its_end(engine):
    with ModelServer(Reply("a b c d", latency=0.05)) as server:
        attempts = [engine.attempt(limits=limited(RateLimit(concurrent=1))) for _ in range(4)]
        calls = [
            InThread(lambda a: list(client(a, server).chat.completions.create(**CHAT, stream=True)), attempt)
            for attempt in attempts
        ]
        assert all(call.join().value for call in calls)
        assert server.ledger.peak_in_flight == 1


def test_adaptive_concurrency_keeps_below_what_the_server_refuses(soak):
    capacity, busy, done, refused = 8, 0, [], []
    seconds = 30 if soak else 3

    async def reply(_request):
        nonlocal busy
        if busy >= capacity:
            refused.append(time.monotonic())
            return Fault.status(429)
        busy += 1
        try:
            await asyncio.sleep(0.05)
        finally:
            busy -= 1
        done.append(time.monotonic())
        return "x"

    with ModelServer(reply) as server:
        end = time.monotonic() + seconds

        def work(_ctx):
            while time.monotonic() < end:
                assert post(server).status_code == 200

        tasks = [ParallelTask(f"t{number}", run=work) for number in range(32)]
        assert ParallelAgentRunner(max_workers=32, adaptive=True, model_retry=50, progress=False).run(tasks).ok
        assert len(refused) < 0.1 * len(done)
        late = sum(at > end - seconds / 3 for at in done)
        assert late >= 0.5 * capacity / 0.05 * seconds / 3


def test_five_hundred_waiters_do_not_hold_up_the_loop():
    """The longest that anything kept the loop busy, in a process where nothing else runs; the best of three rounds."""
    script = Path(__file__).with_name("waiters.py")
    longest = [
        float(subprocess.run([sys.executable, script], capture_output=True, check=True, timeout=60).stdout)
        for _ in range(3)
    ]
    assert min(longest) <= 0.02, longest


def test_a_kept_gate_with_no_limit_holds_up_nobody(engine):
    with ModelServer("x") as server:
        attempt = engine.attempt()
        ask(attempt, server)
        assert (attempt.waited(), attempt.notes.waits) == (0.0, [])
        assert threading.active_count() > 0


def test_a_limit_that_is_named_twice_holds_once():
    with ModelServer(Reply("x", latency=0.05)) as server:
        assert run_calls(server, 8, rate_limits=[RateLimit(concurrent=4), RateLimit(concurrent=4)]).ok
        assert server.ledger.peak_in_flight == 4


def test_tokens_of_a_call_that_was_never_sent_are_given_back(engine):
    limits = limited(RateLimit(tokens=100, per=1))
    with ModelServer("x") as server:
        attempt = engine.attempt(limits=limits)
        with socket.create_server(("127.0.0.1", 0)) as closed:
            gone = SimpleNamespace(base_url=f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
        with pytest.raises(openai.APIConnectionError):
            ask(attempt, gone, max_tokens=5000)
        ask(attempt, server)
        assert attempt.waited() < 5

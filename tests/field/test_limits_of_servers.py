"""F19, F20, and F38, F39 with limits on: pools that are full, and servers that say that it is too much."""

import threading
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from agents import GOVERNED, run

from ag2_parallel import ParallelTask, RateLimit
from ag2_parallel.events import ModelCallStarted
from ag2_parallel.testing import Fault, ModelServer, RecordingObserver, Reply

pytestmark = pytest.mark.usefixtures("no_threads_left")


class TestFullPools:
    """F19."""

    def trial(self, line, connections, workers):
        with (
            ModelServer(Reply("fine", latency=0.2)) as server,
            line.own_client(connections, pool=0.1) as own,
        ):
            config = line.agent_config(server, entry={"http_client": own})
            tasks = [ParallelTask(f"t{number}", "x", config) for number in range(20)]
            results = run(tasks, max_workers=workers, model_retry=100)
            return results, server.ledger

    def test_a_pool_as_large_as_the_workers_is_enough(self, line):
        results, ledger = self.trial(line, 4, 4)
        assert results.ok
        assert (ledger.count, results.usage.retried_calls) == (20, 0)

    def test_a_full_pool_is_waited_out_and_nothing_is_sent_twice(self, line):
        results, ledger = self.trial(line, 2, 20)
        assert results.ok
        assert ledger.count == 20
        assert results.usage.retried_calls > 0
        assert results.usage.unreported_calls == 0, "what was never sent is not charged for"

    def test_where_tries_run_out_the_failure_is_local_and_transient(self, line):
        with (
            ModelServer(Reply("fine", latency=1)) as server,
            line.own_client(1, pool=0.01) as own,
        ):
            config = line.agent_config(server, entry={"http_client": own})
            tasks = [ParallelTask(f"t{number}", "x", config) for number in range(3)]
            results = run(tasks, max_workers=3, model_retry=1)
        assert {result.error.kind for result in results.failed} <= {"timeout", "connection"}
        assert all(result.error.retryable for result in results.failed)


class BusyServer:
    """Lets `limit` requests go in any `per` seconds, and says by `hint` how long to wait."""

    def __init__(self, limit, per, hint):
        self.limit, self.per, self.hint = limit, per, hint
        self.let_through, self.seen = deque(), []
        self._lock = threading.Lock()

    def __call__(self, _request):
        with self._lock:
            now = time.monotonic()
            while self.let_through and now - self.let_through[0] >= self.per:
                self.let_through.popleft()
            ok = len(self.let_through) < self.limit
            self.seen.append((now, ok))
            if ok:
                self.let_through.append(now)
                return Reply("fine")
            return Fault.status(429, headers=self.hint() if callable(self.hint) else self.hint)


def in_two_seconds():
    return {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)}


def is_spread(moments):
    """Whether no tenth of a second has more than twenty of them."""
    return all(sum(at <= other < at + 0.1 for other in moments) <= 20 for at in moments)


class TestTooMuch:
    """F20."""

    HINTS = (
        {"retry-after": "2"},
        {"retry-after-ms": "2000"},
        in_two_seconds,
        {},
        {"retry-after": "0"},
        {"retry-after": "x"},
    )

    @pytest.mark.parametrize("number", range(len(HINTS)))
    def test_all_succeed_without_a_storm(self, line, number, soak):
        count, workers, per = (100, 50, 2.0) if soak else (80, 50, 0.8)
        server_side = BusyServer(20, per, self.HINTS[number])
        with ModelServer(server_side) as server:
            tasks = [ParallelTask(f"t{each}", "x", agent=line.ok(server)) for each in range(count)]
            seen = RecordingObserver()
            results = run(tasks, max_workers=workers, model_retry=6, timeout=60, observers=[seen])
        assert results.ok
        assert len(server_side.seen) <= 1.6 * count
        first = min((at for at, ok in server_side.seen if not ok), default=float("inf"))
        after = [at for at, _ in server_side.seen if at > first]
        # A server that did not get to look at its sockets for a while sees in one go what was sent at its pace.
        sent = [event.at.timestamp() for event in seen.of(ModelCallStarted)][20:]
        assert is_spread(after) or is_spread(sent)

    def test_no_request_before_the_hint(self, line):
        server_side = BusyServer(5, 1.0, {"retry-after": "1"})
        with ModelServer(server_side) as server:
            tasks = [ParallelTask(f"t{each}", "x", agent=line.ok(server)) for each in range(12)]
            assert run(tasks, max_workers=12, model_retry=6).ok
        first = next(at for at, ok in server_side.seen if not ok)
        early = [at for at, _ in server_side.seen if first + 0.3 < at < first + 0.99]
        assert early == []

    def test_a_hint_beyond_the_deadline_fails_fast_and_says_why(self, line):
        with ModelServer(Fault.status(429, retry_after=86400)) as server:
            tasks = [ParallelTask(f"t{each}", "x", agent=line.ok(server)) for each in range(4)]
            results = run(tasks, timeout=60, model_retry=5)
        for result in results.failed:
            assert result.error.kind == "rate_limit"
            assert "86400 s" in result.error.message
            assert result.duration < 30
        assert len(results.failed) == 4


def test_limits_start_with_the_task_and_not_with_the_queue(line):
    """F38 with limits on, those that are found included."""
    with ModelServer(Reply("x", latency=0.1)) as server:
        tasks = [ParallelTask(f"t{each}", "x", agent=line.ok(server)) for each in range(20)]
        results = run(tasks, max_workers=2, timeout=0.9, **GOVERNED)
        assert results.ok


def test_no_more_calls_than_workers(line):
    """F39, likewise."""
    with ModelServer(Reply("x", latency=0.05)) as server:
        tasks = [ParallelTask(f"t{each}", "x", agent=line.ok(server)) for each in range(12)]
        assert run(tasks, max_workers=3, **GOVERNED).ok
        assert server.ledger.peak_in_flight <= 3


@pytest.mark.parametrize("count_waiting", [True, False])
def test_waiting_for_a_limit_may_be_left_out_of_the_time(line, count_waiting):
    with ModelServer("x") as server:
        tasks = [ParallelTask(f"t{each}", "x", agent=line.ok(server)) for each in range(4)]
        limit = RateLimit(requests=1, per=0.6)
        results = run(tasks, max_workers=4, timeout=1.0, rate_limits=limit, count_waiting=count_waiting)
        assert results.ok is not count_waiting
        for result in results.values():
            assert 0 <= result.waited <= result.duration
        if not count_waiting:
            assert max(result.waited for result in results.values()) > 1.0


def test_backoff_between_attempts_may_be_left_out_too():
    from ag2_parallel import RetryPolicy

    def work(ctx):
        if ctx.attempt < 3:
            raise TimeoutError
        return ctx.remaining()

    policy = RetryPolicy(3, initial=0.4, factor=1, jitter=False)
    kept = run([ParallelTask("t", run=work)], retry=policy, timeout=0.5, count_waiting=False)["t"]
    assert kept.ok
    assert kept.waited == pytest.approx(0.8, abs=0.1)
    assert 0.2 < kept.output <= 0.5
    counted = run([ParallelTask("t", run=work)], retry=policy, timeout=0.5)["t"]
    assert not counted.ok

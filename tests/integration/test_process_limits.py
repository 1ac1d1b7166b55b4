"""Limits, budgets and the journal hold over all worker processes together. See `work_in_processes`."""

import os
import random
import signal
import threading
import time

import psutil
import pytest

from ag2_parallel import Budget, ParallelAgentRunner, ParallelTask, ProcessBackend, RateLimit
from ag2_parallel.testing import Fault, ModelServer
from ag2_parallel.testing.server_process import ModelServerProcess

FOUR = ProcessBackend(workers=4)


def tasks(url, count, calls=1, work="calls", **fields):
    context = {"url": url}
    return [
        ParallelTask(f"t{i}", str(calls), run=f"work_in_processes:{work}", context=context, **fields)
        for i in range(count)
    ]


def echo(request):
    return request.last_text


def run(made, workers=16, **options):
    return ParallelAgentRunner(workers, backend=FOUR, progress=False, **options).run(made)


class Throttling:
    """Answers so many requests in each window of some seconds, and refuses the others."""

    def __init__(self, at_most, within):
        self.refused = 0
        self._at_most, self._within = at_most, within
        self._since, self._count = 0.0, 0
        self._lock = threading.Lock()

    def __call__(self, request):
        with self._lock:
            now = time.monotonic()
            if now - self._since > self._within:
                self._since, self._count = now, 0
            self._count += 1
            if self._count <= self._at_most:
                return echo(request)
            self.refused += 1
            return Fault.status(429, retry_after=f"{self._since + self._within - now + 0.05:.2f}")


class TestRateLimits:
    def test_calls_at_once(self):
        with ModelServer(echo, latency=0.05) as server:
            results = run(tasks(server.base_url, 40), rate_limits=[RateLimit(concurrent=3)])
            assert results.ok
            assert server.ledger.peak_in_flight <= 3
            assert results.metrics["waited_by_limit"]

    def test_requests_in_a_time(self, soak):
        """50 a second over 4 processes: no window of half the run above its share, and at least 95 % of it used."""
        seconds = 20 if soak else 4
        with ModelServer(echo) as server:
            calls = 50 * seconds // 20
            assert run(tasks(server.base_url, 20, calls), 20, rate_limits=[RateLimit(requests=50, per=1)]).ok
            times = sorted(request.at for request in server.ledger.requests)
        window = seconds / 2
        most = max(sum(start <= time < start + window for time in times) for start in times)
        assert most <= 50 * window + 10
        first, last = len(times) // 4, len(times) * 3 // 4  # while all processes have something to send
        assert (last - first) / (times[last] - times[first]) >= (47.5 if soak else 42)  # a short one starts late

    def test_a_call_that_cannot_go_in_time_fails_at_once(self):
        limits = [RateLimit(requests=1, per=60)]
        with ModelServer(echo) as server:
            results = run(tasks(server.base_url, 2, timeout=20), rate_limits=limits)
        assert [result.ok for result in results.values()].count(True) == 1
        (late,) = results.failed
        assert "1 requests in 60 s" in late.error.message
        assert late.duration < 10

    def test_leases_of_a_killed_process_come_back(self):
        with ModelServer(echo, latency=0.5) as server:
            with ParallelAgentRunner(
                8, backend=ProcessBackend(workers=2), rate_limits=[RateLimit(concurrent=2)], progress=False
            ) as runner:
                handle = runner.start(tasks(server.base_url, 8))
                assert server.ledger.wait_for(lambda ledger: ledger.count >= 2, timeout=20)
                workers()[0].kill()
                results = handle.results()
            assert results.ok
            assert server.ledger.count <= 8 + 2

    def test_a_server_that_throttles_pauses_all_processes(self):
        answer = Throttling(at_most=10, within=1.0)
        with ModelServer(answer) as server:
            results = run(tasks(server.base_url, 60), model_retry=20)
            assert results.ok
            assert answer.refused < 40


def workers():
    (server,) = [each for each in psutil.Process().children() if each.children()]
    return server.children()


class TestBudgets:
    def test_of_a_task(self):
        with ModelServer(echo) as server:
            results = run(tasks(server.base_url, 4, 50), budget=Budget(max_task_tokens=30))
            assert {result.error.kind for result in results.values()} == {"budget"}
            assert all(30 <= result.usage.total_tokens < 60 for result in results.values())

    def test_of_the_run(self):
        with ModelServer(echo) as server:
            results = run(tasks(server.base_url, 8, 1000), 8, budget=Budget(max_tokens=400))
            assert results.stop_reason == "budget"
            assert 400 <= server.ledger.tokens_sent < 400 + 8 * 20
            assert results.usage.total_tokens == server.ledger.tokens_sent


def test_usage_is_that_of_the_servers_ledger():
    with ModelServer(echo) as server:
        results = run(tasks(server.base_url, 30, 3))
        assert results.usage.total_tokens == server.ledger.tokens_sent
        assert results.usage.calls == 90
    kinds = [span.kind for span in results["t7"].trace]
    assert (kinds.count("attempt"), kinds.count("call")) == (1, 3)


def test_a_lost_attempt_pays_for_no_call_twice(tmp_path):
    with ModelServer(echo) as server:
        made = tasks(server.base_url, 3, 4, "dies_after_its_calls")
        results = run(made, 3, journal=tmp_path / "runs.db", directory=tmp_path)
        assert server.ledger.count == 12
    assert results.ok
    assert [result.output[-1] for result in results.values()] == ["t0/3", "t1/3", "t2/3"]
    assert [(result.attempts, result.usage.calls, result.replayed_calls) for result in results.values()] == [
        (2, 4, 4)
    ] * 3


@pytest.mark.parametrize("journal", [None, "runs.db"])
def test_an_effect_happens_once_though_its_process_dies(tmp_path, journal):
    paid = tmp_path / "paid"
    os.environ["PAID"] = str(paid)
    try:
        again = ParallelTask("t", "30", run="work_in_processes:pays_and_dies")
        unclear = ParallelTask("u", "40", run="work_in_processes:dies_while_it_pays")
        results = run([again, unclear], journal=journal and tmp_path / journal, directory=tmp_path)
    finally:
        del os.environ["PAID"]
    assert (results["t"].output, results["t"].attempts) == ("paid 30", 2)
    assert paid.read_text(encoding="utf-8") == "30\n"
    assert results["u"].error.kind == "uncertain"


def test_a_call_that_a_stop_cut_is_counted():
    with ModelServer(echo, latency=5) as server:
        results = run(tasks(server.base_url, 2, timeout=1.5), 2)
        assert server.ledger.count == 2
    assert [str(result.status) for result in results.values()] == ["timed_out"] * 2
    assert [result.usage.unreported_calls for result in results.values()] == [1, 1]


class Killer:
    """Kills a random worker process, again and again, for some seconds."""

    def __init__(self, seed, every, seconds):
        self.kills = 0
        self._random = random.Random(seed)
        self._every, self._seconds = every, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._kill)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _kill(self):
        end = None
        while not self._ended.wait(self._every) and (end is None or time.monotonic() < end):
            found = [each for server in psutil.Process().children() for each in server.children()]
            if found:
                end = end or time.monotonic() + self._seconds
                try:
                    os.kill(self._random.choice(found).pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.kills += 1


ROUNDS = 50 if os.environ.get("AG2_PARALLEL_SOAK") else 3


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_workers_are_killed(seed, tmp_path):
    """Every task ends exactly once, and no call is paid for twice but those in flight at a kill."""
    count, calls, workers = 100, 4, 8
    with ModelServerProcess(latency=0.1) as server, Killer(seed, 0.5, 5.0) as killer:
        runner = ParallelAgentRunner(
            workers, backend=FOUR, journal=tmp_path / "runs.db", progress=False, directory=tmp_path
        )
        results = runner.run(tasks(server.base_url, count, calls))
        sent = server.ledger()["count"]
    assert killer.kills >= 5
    assert len(results) == count
    assert {str(result.status) for result in results.values()} <= {"succeeded", "failed"}
    assert {result.error.kind for result in results.failed} <= {"worker_crashed"}
    lost = sum(record.ended == "killed" for result in results.values() for record in result.attempt_log)
    assert lost > 0
    assert sent <= count * calls + lost

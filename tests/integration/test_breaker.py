"""P20: a run whose tasks fail one after another for one cause stops or pauses."""

import itertools
import logging

import pytest

from ag2_parallel import Breaker, ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import Fault, ModelServer, RecordingObserver

pytestmark = pytest.mark.usefixtures("no_threads_left")


def runner(server, **options):
    return ParallelAgentRunner(
        **{"progress": False, "model_retry": 1, "max_workers": 1, "llm_config": server.llm_config(), **options}
    )


def chats(count):
    return [ParallelTask(f"t{n}", "hello") for n in range(count)]


class TestStop:
    @pytest.mark.parametrize(("fault", "kind"), [
        (Fault.status(401), "authentication"),
        (Fault.status(429, code="insufficient_quota"), "quota"),
        (Fault.status(404, message="The model `nope` does not exist", code="model_not_found"), "configuration"),
        (Fault.reset(), "connection"),
    ])  # fmt: skip
    def test_one_cause_stops_it_and_the_rest_is_spared(self, fault, kind, caplog):
        observer = RecordingObserver()
        with ModelServer(fault) as server, caplog.at_level(logging.WARNING, "ag2_parallel"):
            results = runner(server, breaker=Breaker(same_failures=4), observers=[observer]).run(chats(30))
        assert results.stop_reason == "breaker"
        assert server.ledger.count == 4
        assert [result.error.kind for result in results.failed] == [kind] * 4
        assert len(results.skipped) == results.metrics["spared"] == 26
        assert results["t29"].stop_reason == "breaker"
        assert kind in results["t29"].error.message
        warning = next(record.getMessage() for record in caplog.records if "spared" in record.getMessage())
        assert "26 tasks are spared" in warning
        assert kind in warning
        assert [event.reason for event in observer.events if event.type == "RunStopping"] == ["breaker"]
        assert any("26 tasks" in event.message for event in observer.events if event.type == "RunWarning")

    def test_running_tasks_finish(self):
        with ModelServer(lambda request: Fault.status(401) if "bad" in request.last_text else "fine") as server:
            slow = ParallelTask("slow", run=lambda ctx: (ctx.context, failed.wait(20))[1])
            failed = FailedOnes(3)
            tasks = [slow, *(ParallelTask(f"bad{n}", "bad") for n in range(9))]
            results = runner(server, breaker=Breaker(3), max_workers=2, observers=[failed]).run(tasks)
        assert results["slow"].ok
        assert len(results.failed) == 3
        assert results.metrics["spared"] == 6

    def test_a_success_in_between_keeps_it_going(self):
        answers = itertools.cycle([Fault.status(401), Fault.status(401), "fine"])
        with ModelServer(lambda request: next(answers)) as server:
            results = runner(server, breaker=Breaker(3)).run(chats(12))
        assert results.stop_reason is None
        assert results.metrics["spared"] == 0
        assert len(results.failed) == 8

    def test_different_causes_keep_it_going(self):
        answers = itertools.cycle([Fault.status(401), Fault.status(500)])
        with ModelServer(lambda request: next(answers)) as server:
            assert runner(server, breaker=Breaker(2)).run(chats(10)).stop_reason is None

    def test_failures_of_functions_count_too(self):
        def broken(ctx):
            raise KeyError(f"row {ctx.index} has no text")

        with ModelServer() as server:
            results = runner(server, breaker=Breaker(5)).run([ParallelTask(f"t{n}", run=broken) for n in range(20)])
        assert results.metrics["spared"] == 15

    def test_an_endless_source_ends(self):
        with ModelServer(Fault.status(401)) as server:
            results = runner(server, breaker=Breaker(5)).run(ParallelTask(f"t{n}", "x") for n in itertools.count())
        assert results.stop_reason == "breaker"
        assert len(results.failed) == 5

    def test_with_many_workers_no_more_are_lost_than_were_running(self):
        with ModelServer(Fault.status(401)) as server:
            results = runner(server, breaker=Breaker(10), max_workers=8).run(chats(100))
        assert 10 <= len(results.failed) <= 10 + 7
        assert len(results.failed) + results.metrics["spared"] == 100


class FailedOnes:
    """Waits until so many tasks have failed."""

    def __init__(self, count):
        import threading

        self._left = count
        self._done = threading.Event()
        self.wait = self._done.wait

    def __call__(self, event):
        if event.type == "TaskFinished" and event.status == "failed":
            self._left -= 1
            if not self._left:
                self._done.set()


class TestPause:
    def test_the_run_goes_on_when_the_server_is_back(self):
        """An outage of 6 requests costs 3 failures and a probe for each pause, and nobody else."""
        observer = RecordingObserver()
        breaker = Breaker(same_failures=3, action="pause", probe_after=0.05)
        with ModelServer("fine") as server:
            server.fail_next(Fault.status(503), times=5)
            results = runner(server, breaker=breaker, max_workers=4, observers=[observer]).run(chats(40))
        assert results.stop_reason is None
        assert len(results.failed) == 5
        assert len(results.succeeded) == 35
        assert results.metrics["spared"] == 0
        told = [event.message for event in observer.events if event.type == "RunWarning"]
        assert "then one task is let through" in told[0]
        assert "status 503" in told[0]
        assert "the run goes on" in told[-1]

    def test_one_at_a_time_while_it_lasts_and_pauses_grow(self):
        breaker = Breaker(same_failures=2, action="pause", probe_after=0.05)
        with ModelServer("fine") as server:
            server.fail_next(Fault.status(503), times=5)
            results = runner(server, breaker=breaker, max_workers=1).run(chats(20))
            arrivals = [request.at for request in server.ledger.requests[:6]]
        gaps = [later - earlier for earlier, later in itertools.pairwise(arrivals)]
        assert gaps[1] >= 0.05
        assert gaps[2] >= 0.1
        assert gaps[3] >= 0.2
        assert len(results.failed) == 5

    def test_a_paused_run_can_be_stopped(self):
        with ModelServer(Fault.status(503)) as server:
            breaker = Breaker(same_failures=2, action="pause", probe_after=1000)
            results = runner(server, breaker=breaker, run_timeout=0.5).run(chats(10))
        assert results.stop_reason == "run_timeout"
        assert (len(results.failed), len(results.skipped)) == (2, 8)

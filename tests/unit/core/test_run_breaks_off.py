"""A mistake of ours ends the run with a result for every task; it never hangs it."""

import random
import threading

import pytest

from ag2_parallel.core.broadcast import Broadcast
from ag2_parallel.core.clock import SystemClock
from ag2_parallel.core.engine import Engine
from ag2_parallel.core.entries import Limits, NewTask, RunHooks
from ag2_parallel.core.outlet import Outlet
from ag2_parallel.core.run import Run
from ag2_parallel.core.schedule import Schedule
from ag2_parallel.core.scheduled import ScheduledTask, SchedulePolicy
from ag2_parallel.core.upstream import Upstream
from ag2_parallel.ports import AttemptOutcome
from ag2_parallel.tasks import ParallelTask


class BrokenSchedule(Schedule):
    """Breaks when it is told that an attempt ended."""

    def ended(self, *args, **fields):
        raise RuntimeError("a bug")


class EndsAtOnce:
    """A backend whose attempts end as soon as they start."""

    def __init__(self, run):
        self.run = run

    def start(self, order):
        self.run.attempt_ended(order.index, order.attempt, AttemptOutcome())
        return True


@pytest.fixture
def engine():
    engine = Engine()
    yield engine
    engine.close()


def test_every_task_gets_a_result_that_says_so(engine, caplog):
    clock, over = SystemClock(), threading.Event()
    outlet = Outlet(streamed=True)
    run = Run(
        engine=engine,
        schedule=BrokenSchedule(SchedulePolicy(max_workers=1), clock.monotonic(), random.Random(0)),
        clock=clock,
        outlet=outlet,
        broadcast=Broadcast([], "r"),
        upstream=Upstream({}, open_ended=False),
        hooks=RunHooks(*[lambda result: None] * 3, lambda: None, over.set),
    )
    run.backend = EndsAtOnce(run)
    limits = Limits(None, None, None)
    run.add([NewTask(ParallelTask(f"t{i}", run=print), ScheduledTask(i), limits) for i in range(3)])
    assert over.wait(10)
    results = [outlet.take() for _ in range(3)]
    assert [result.status for result in results] == ["failed"] * 3
    assert all("report it: RuntimeError: a bug" in result.error.message for result in results)
    assert isinstance(run.internal_error, RuntimeError)


def test_one_broken_message_does_not_hold_up_the_next(engine, caplog):
    arrived = threading.Event()

    def broken():
        raise RuntimeError("a bug")

    engine.post(broken)
    engine.post(arrived.set)
    assert arrived.wait(10)
    assert "a bug" in caplog.text

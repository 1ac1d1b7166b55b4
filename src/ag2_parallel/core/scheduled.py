"""What the schedule knows of a task and of an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ag2_parallel.core.transitions import (
    AttemptEvent,
    AttemptState,
    TaskEvent,
    TaskState,
    next_attempt_state,
    next_task_state,
)
from ag2_parallel.policies import RetryPolicy

if TYPE_CHECKING:
    from ag2_parallel.core.lazy_heap import Entry
    from ag2_parallel.policies import Breaker
    from ag2_parallel.results import TaskError, TaskStatus

_ONE_ATTEMPT = RetryPolicy(1)


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """A task as far as its schedule goes.

    Attributes:
        index: Its place in the input; unique, and higher than that of every task added before.
        depends_on: Indexes of tasks that must have succeeded before it starts.
        priority: Higher starts first; ties start in the order of their indexes.
        timeout: Seconds from the first start, attempts and backoff included; None: no limit.
        attempt_timeout: Seconds for one attempt; None: no limit.
        idle_timeout: Seconds of an attempt without a sign of life; None: no limit.
        retry: Attempts and the waits between them.
        problem: What is wrong with it. It settles as failed at once and never starts.
        expected: Seconds it is expected to take; among equal priorities the longest starts first.
        kept: How it ended in an earlier life of the run. It settles so at once and never starts.
    """

    index: int
    depends_on: tuple[int, ...] = ()
    priority: int = 0
    timeout: float | None = None
    attempt_timeout: float | None = None
    idle_timeout: float | None = None
    retry: RetryPolicy = _ONE_ATTEMPT
    problem: TaskError | None = None
    expected: float = 0.0
    kept: TaskStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePolicy:
    """The rules of one run.

    Attributes:
        max_workers: The most attempts that hold a slot at once.
        handle_errors: `fail_fast` stops the run at the first task that ends badly; others do not.
        grace: Seconds a stopped attempt has to unwind.
        max_abandoned: How many abandoned attempts keep anything new from starting; None: max(8, max_workers).
        run_timeout: Seconds for the whole run; None: no limit.
        abandoned_patience: Seconds after which a run that `max_abandoned` holds up is stopped.
        insist_for: Seconds from insisting to giving up.
        breaker: What happens when task after task fails for one cause; None: nothing.
        count_waiting: Whether waiting for limits, and backoff, counts in the limits of tasks and attempts.
        starts_at_once: The most attempts that start before the next `tick`, which is due at once. None: all that can.
    """

    max_workers: int
    handle_errors: str = "collect"
    grace: float = 1.0
    max_abandoned: int | None = None
    run_timeout: float | None = None
    abandoned_patience: float = 60.0
    insist_for: float = 0.1
    breaker: Breaker | None = None
    count_waiting: bool = True
    starts_at_once: int | None = None


class Verdict(NamedTuple):
    """The outcome of a task, or of an attempt if no other follows. The fields are those of `Settle`."""

    status: TaskStatus
    stop_reason: str | None
    error: TaskError | None = None
    because: int | None = None


@dataclass(slots=True, eq=False)
class TaskRecord:
    """A task that is not settled yet.

    Attributes:
        task: What was added.
        state: Where it is.
        attempts: How many attempts started.
        lost: How many of them went down with their process and do not count.
        unmet: How many dependencies it still waits for.
        limit: Monotonic time of the task's limit; None before the first start and without one.
        not_before: Monotonic time before which the next attempt must not start.
        current: The attempt that runs, or is to be waited for.
        ended: How the last attempt's code came to its end; `stopping` while it unwinds.
        last: The outcome if no other attempt follows.
        limit_alarm: The alarm for `limit`.
        backoff_alarm: The alarm for `not_before`.
        place: Its entry in the queue of ready tasks.
    """

    task: ScheduledTask
    state: TaskState = TaskState.BLOCKED
    attempts: int = 0
    lost: int = 0
    unmet: int = 0
    limit: float | None = None
    not_before: float = 0.0
    current: AttemptRecord | None = None
    ended: str | None = None
    last: Verdict | None = None
    limit_alarm: Entry | None = None
    backoff_alarm: Entry | None = None
    place: Entry | None = None

    def move(self, event: TaskEvent) -> None:
        """Go where the table says."""
        self.state = next_task_state(self.task.index, self.state, event)


@dataclass(slots=True, eq=False)
class AttemptRecord:
    """An attempt whose code has not ended.

    Attributes:
        record: The task it belongs to.
        number: From 1.
        alive_at: Monotonic time of the last sign of life.
        waits: How many waits for a limit or a person are open.
        limit: Monotonic time of its own limit; None without one.
        stands_still: How many waits are open that stop its limit and its task's.
        still_since: When the first of these began.
        state: Where it is.
        limit_alarm: The alarm for its own limit, later for its grace.
        idle_alarm: The alarm for its idle limit.
    """

    record: TaskRecord
    number: int
    alive_at: float
    waits: int = 0
    limit: float | None = None
    stands_still: int = 0
    still_since: float = 0.0
    state: AttemptState = AttemptState.RUNNING
    limit_alarm: Entry | None = None
    idle_alarm: Entry | None = None

    @property
    def index(self) -> int:
        """The task's place in the input."""
        return self.record.task.index

    def move(self, event: AttemptEvent) -> None:
        """Go where the table says."""
        self.state = next_attempt_state(self.index, self.number, self.state, event)

"""What the schedule answers with: the things its driver has to do, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ag2_parallel.results import TaskError, TaskStatus


@dataclass(frozen=True, slots=True)
class Start:
    """Run this attempt.

    Attributes:
        index: The task's place in the input.
        attempt: The attempt's number, from 1.
        deadline: Monotonic time of the nearest of the task's, the attempt's and the run's limits;
            None without one.
    """

    index: int
    attempt: int
    deadline: float | None


@dataclass(frozen=True, slots=True)
class Stop:
    """Raise the stop signal in this attempt; it has the grace to unwind.

    Attributes:
        index: The task's place in the input.
        attempt: The attempt's number.
        reason: `deadline`, `attempt_deadline`, `idle`, `run_deadline`, `cancelled`, `fail_fast` or `budget`.
    """

    index: int
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Insist:
    """The grace of this stopped attempt is used up."""

    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt's code came to its end, or is given up. Exactly once for each started attempt.

    Attributes:
        index: The task's place in the input.
        attempt: The attempt's number.
        how: `returned`, `unwound`, `cut` or what else the driver reported; `abandoned` if it was given up.
    """

    index: int
    attempt: int
    how: str


@dataclass(frozen=True, slots=True)
class Returned:
    """An abandoned attempt came back after all."""

    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Retry:
    """An attempt failed and another one follows.

    Attributes:
        index: The task's place in the input.
        attempt: The number of the attempt that failed.
        delay: Seconds from now to the earliest start of the next one.
        error: Why it failed.
    """

    index: int
    attempt: int
    delay: float
    error: TaskError


@dataclass(frozen=True, slots=True)
class Settle:
    """The task's outcome is decided. Exactly once for each task.

    Attributes:
        index: The task's place in the input.
        attempts: How many attempts started.
        status: The outcome.
        stop_reason: Why it ended, as in a result; None where the answer says so itself.
        error: The failure; None where it succeeded, and where a limit, a stop or a dependency decided.
        ended: How the last attempt's code came to its end, `stopping` while it unwinds, None without an attempt.
        because: Index of the dependency that did not succeed, for a task skipped for it.
    """

    index: int
    attempts: int
    status: TaskStatus
    stop_reason: str | None
    error: TaskError | None
    ended: str | None
    because: int | None


@dataclass(frozen=True, slots=True)
class Stopping:
    """The run began to stop. Once for each stage.

    Attributes:
        reason: What made it stop.
        stop_running: Whether running attempts are stopped too, or finish by themselves.
    """

    reason: str
    stop_running: bool


@dataclass(frozen=True, slots=True)
class Tripped:
    """The last tasks failed for one cause. `Stopping` follows, or nothing starts before the next probe.

    Attributes:
        cause: What they failed for, in words.
        failures: How many in a row.
        waiting: How many tasks that never started do not start now.
        pause: Seconds to the next probe; None: the run stops.
    """

    cause: str
    failures: int
    waiting: int
    pause: float | None


@dataclass(frozen=True, slots=True)
class Recovered:
    """The probe succeeded: things start again."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The input is closed, every task settled and nothing unwinds any more. Exactly once, the last but for `Returned`.

    Attributes:
        stop_reason: What ended the run early, or None.
    """

    stop_reason: str | None


Command: TypeAlias = Start | Stop | Insist | Ended | Returned | Retry | Settle | Stopping | Tripped | Recovered | Finish

"""What a run knows of its tasks, beside what their schedule knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ag2_parallel.core.outcome import AttemptLog

if TYPE_CHECKING:
    from ag2_parallel.core.scheduled import ScheduledTask
    from ag2_parallel.ports import AttemptOutcome, Judge
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.tasks import ParallelTask


@dataclass(slots=True)
class Entry:
    """What the run knows of a task that is not settled yet, or whose last attempt still unwinds."""

    task: ParallelTask
    depends_on: tuple[int, ...]
    limits: Limits
    judge: Judge | None
    read_at: float
    log: AttemptLog = field(default_factory=AttemptLog)
    outcome: AttemptOutcome | None = None
    settled: ParallelTaskResult | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The time limits in force for a task, for the words of an error."""

    timeout: float | None
    attempt_timeout: float | None
    idle_timeout: float | None


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task as the feeder hands it over."""

    task: ParallelTask
    scheduled: ScheduledTask
    limits: Limits
    judge: Judge | None = None

"""What a run knows of its tasks, beside what their schedule knows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ag2_parallel.core.outcome import AttemptLog
from ag2_parallel.results import TaskError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ag2_parallel.core.kept import Kept
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
    fingerprint: str = ""
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
    fingerprint: str = ""
    kept: Kept | None = None
    """Its result of an earlier life of the run, where that stands."""


@dataclass(frozen=True, slots=True)
class RunHooks:
    """Whom a run tells on the engine loop; none of them may block or raise.

    Attributes:
        settled: A task has its result, which is not published yet.
        kept: A task keeps its result of an earlier life.
        published: Whoever reads gets a result now.
        stopping: Nothing new starts any more.
        finished: Everything is settled and nothing unwinds.
    """

    settled: Callable[[ParallelTaskResult], None]
    kept: Callable[[Kept], None]
    published: Callable[[ParallelTaskResult], None]
    stopping: Callable[[], None]
    finished: Callable[[], None]


def as_gone(new: NewTask, names: Sequence[str]) -> NewTask:
    """A task that fails at once, because results it depends on are not kept any more."""
    text = (
        f'task "{new.task.name}": depends_on: the result of {", ".join(names)} is not kept any more; where tasks are read '
        "one by one, depend on recent ones, or pass a list"
    )
    problem = TaskError(type="ConfigurationError", message=text, kind="configuration", retryable=False)
    return replace(new, scheduled=replace(new.scheduled, depends_on=(), problem=problem))

"""Which tasks of an earlier life of a run keep their results: decided before any of them starts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from ag2_parallel.core.entries import NewTask
from ag2_parallel.core.kept import Kept
from ag2_parallel.core.scheduled import ScheduledTask
from ag2_parallel.errors import ConfigurationError, JournalDamagedError
from ag2_parallel.results import ParallelTaskResult, TaskError, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ag2_parallel.records import EarlierTask, RunJournal
    from ag2_parallel.tasks import ParallelTask

Rerun = Literal["not_succeeded", "failed", "interrupted", "none"]
Changed = Literal["rerun", "keep", "error"]
Uncertain = Literal["fail", "repeat", "skip"]

_SHOWN: Final = 10
"""How many names a message lists."""

_AGAIN: Final[dict[str, frozenset[str]]] = {
    "not_succeeded": frozenset({"failed", "timed_out", "cancelled", "skipped"}),
    "failed": frozenset({"failed", "timed_out"}),
    "interrupted": frozenset({"cancelled", "skipped"}),
    "none": frozenset(),
}
"""The statuses whose tasks run again."""

_STATUSES: Final = {str(status): status for status in TaskStatus}


@dataclass(frozen=True, slots=True)
class ResumePolicy:
    """What a resumed run does again.

    Attributes:
        rerun: Which of the tasks with a result run again. Those without one run in any case.
        changed: What happens to a task that would do something else than before: it runs again, keeps its
            result, or is an error.
        uncertain: What an effect does whose intent has no receipt: the task fails, it is repeated, or skipped.
    """

    rerun: Rerun = "not_succeeded"
    changed: Changed = "rerun"
    uncertain: Uncertain = "fail"

    def __post_init__(self) -> None:
        """Refuse other words.

        Raises:
            ConfigurationError: With every problem.
        """
        choices = {"rerun": Rerun, "changed": Changed, "uncertain": Uncertain}
        problems = [
            f"{name}: {getattr(self, name)!r} is none of " + ", ".join(f'"{choice}"' for choice in get_args(kind))
            for name, kind in choices.items()
            if getattr(self, name) not in get_args(kind)
        ]
        if problems:
            raise ConfigurationError(problems)


class _Place(NamedTuple):
    """Where a result that stands belongs in this life."""

    name: str
    number: int
    metadata: Any
    group: str | None
    output_type: Any


@dataclass(slots=True)
class Resumption:
    """Compares the tasks of this life with what the journal knows of earlier ones.

    Attributes:
        kept: How many results stand.
        again: How many tasks run again.
        unfinished: How many of these have no result, since an earlier life ended in their midst.
        changed: Names of tasks that would do something else than before.
    """

    journal: RunJournal
    policy: ResumePolicy
    fingerprint: Callable[[ParallelTask], str]
    restore: Callable[[Any, Any], Any]
    """From a task's `output_type` and its stored output to what the type makes of it."""
    known: Callable[[str], bool] = lambda _name: False
    """Whether the caller has a result of the task, which stands whatever its status."""
    kept: int = 0
    again: int = 0
    unfinished: int = 0
    changed: list[str] = field(default_factory=list)
    _earlier: dict[str, EarlierTask] = field(default_factory=dict)
    _stand: set[int] = field(default_factory=set)
    _refusals: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read what is known. Blocking."""
        self._earlier = {task.name: task for task in self.journal.earlier()}

    @property
    def is_first_life(self) -> bool:
        """Whether nothing is known of the run."""
        return not self._earlier and not self.kept and not self.again

    def whole(self, tasks: Sequence[NewTask]) -> list[NewTask]:
        """Decide for a list.

        Raises:
            ConfigurationError: With `changed="error"`, naming every task that changed.
            JournalDamagedError: A result that stands cannot be read.
        """
        decided = [self._decided(new, self._loaded) for new in tasks]
        self._run_dependants_again(tasks, decided)
        decided = [new if new.kept is None else self._read(new) for new in decided]
        if self.changed and self.policy.changed == "error":
            many = "1 task" if len(self.changed) == 1 else f"{len(self.changed):,} tasks"
            raise ConfigurationError(
                f"{many} would do something else than before: {_listed(self.changed)}; start a new run for that, or resume "
                'with changed="rerun" or changed="keep"'
            )
        return decided

    def one(self, new: NewTask) -> NewTask:
        """Decide for a task of a source; with `changed="error"` one that changed fails, and the journal keeps what it has."""
        before = len(self.changed)
        decided = self._decided(new, self._loaded_or_failed)
        if self.policy.changed == "error":
            if len(self.changed) > before:
                return self._refused(decided, "would do something else than before")
            if not self._refusals.isdisjoint(new.scheduled.depends_on):
                return self._refused(decided, "depends on one that would do something else than before")
        if decided.kept is not None and not self._stand.issuperset(new.scheduled.depends_on):
            decided = self._again_after_all(new, decided)
        if decided.kept is not None:
            self._stand.add(new.scheduled.index)
        return decided

    def _refused(self, new: NewTask, why: str) -> NewTask:
        """A task that fails in this life alone: it is settled like one whose result stands, so nothing is written down."""
        name, index = new.task.name, new.scheduled.index
        self._refusals.add(index)
        result = _failed(
            _Place(name, index, None, None, None),
            f'task "{name}" {why}, and changed="error" (--changed error) refuses that',
        )
        kept = Kept(name, index, result.status, lambda: result)
        scheduled = ScheduledTask(index, new.scheduled.depends_on, kept=result.status)
        return replace(new, judge=None, kept=kept, scheduled=scheduled)

    def _decided(self, new: NewTask, load: Callable[[_Place], ParallelTaskResult]) -> NewTask:
        """The task with its fingerprint, and with its result if that stands.

        A hundred thousand of them come before the first that runs, so what stands is made in one step and holds no
        more than its place.
        """
        task, name = new.task, new.task.name
        fingerprint = self.fingerprint(task)
        earlier = self._earlier.pop(name, None)
        if earlier is None or new.scheduled.problem is not None:
            return replace(new, fingerprint=fingerprint)
        is_changed = earlier.fingerprint != fingerprint
        if is_changed:
            self.changed.append(name)
        stands = self._would_stand(earlier)
        if is_changed and self.policy.changed != "keep":
            stands = False
        if not stands:
            self.again += 1
            self.unfinished += earlier.status is None
            return replace(new, fingerprint=fingerprint)
        self.kept += 1
        index, depends_on = new.scheduled.index, new.scheduled.depends_on
        place = _Place(name, index, task.metadata, task.group, task.output_type)
        status = _STATUSES[earlier.status or ""]
        scheduled = ScheduledTask(index, depends_on, kept=status)
        return NewTask(task, scheduled, new.limits, None, fingerprint, Kept(name, index, status, partial(load, place)))

    def _loaded(self, place: _Place) -> ParallelTaskResult:
        """A stored result, in its task's place of this life."""
        stored = self.journal.result(place.name)
        if stored is None:
            raise JournalDamagedError(f'the result of task "{place.name}" is not in the journal any more')
        output = stored.output
        if place.output_type is not None and stored.status is TaskStatus.SUCCEEDED:
            output = self.restore(place.output_type, output)
        return replace(stored, index=place.number, output=output, metadata=place.metadata, group=place.group)

    def _loaded_or_failed(self, place: _Place) -> ParallelTaskResult:
        """The same for whoever cannot be told by an exception any more, since the run has begun."""
        try:
            return self._loaded(place)
        except Exception as error:
            return _failed(place, str(error), type(error).__name__)

    def _read(self, new: NewTask) -> NewTask:
        """With the result read now, so that a damaged journal is an error before anything starts."""
        assert new.kept is not None
        result = new.kept.load()
        return replace(new, kept=replace(new.kept, load=lambda: result))

    def _run_dependants_again(self, tasks: Sequence[NewTask], decided: list[NewTask]) -> None:
        """A result does not stand where a task it depends on runs again: it was made from another answer."""
        place = {new.scheduled.index: position for position, new in enumerate(decided)}
        dependants: dict[int, list[int]] = {}
        for new in decided:
            for index in new.scheduled.depends_on:
                dependants.setdefault(index, []).append(new.scheduled.index)
        todo = [new.scheduled.index for new in decided if new.kept is None]
        while todo:
            for index in dependants.pop(todo.pop(), ()):
                new = decided[place[index]]
                if new.kept is not None:
                    decided[place[index]] = self._again_after_all(tasks[place[index]], new)
                    todo.append(index)

    def _again_after_all(self, given: NewTask, decided: NewTask) -> NewTask:
        self.kept -= 1
        self.again += 1
        return replace(given, fingerprint=decided.fingerprint)

    @property
    def removed(self) -> list[str]:
        """Names of tasks that the journal knows and that were not among those of this life so far."""
        return list(self._earlier)

    def told(self, *, whole: bool) -> str:
        """What is kept and what runs again, in a sentence; `whole`: all tasks of this life were seen."""
        if not whole:
            return self._told_ahead()
        parts = [_counted(self.kept, self.again, self.unfinished)]
        if self.changed:
            what = "keep their results" if self.policy.changed == "keep" else "run again"
            parts.append(
                f"{len(self.changed):,} would do something else than before and {what} ({_listed(self.changed)})"
            )
        if self.removed:
            parts.append(
                f"{len(self.removed):,} stay in the journal and are no part of it any more ({_listed(self.removed)})"
            )
        return "; ".join(parts)

    def _told_ahead(self) -> str:
        """The same by the journal alone, where the tasks of this life are still to be read."""
        stand = sum(self._would_stand(task) for task in self._earlier.values())
        unfinished = sum(task.status is None for task in self._earlier.values())
        others = "new or changed" if self.policy.changed == "rerun" else "new"
        refused = (
            "; those that changed fail, and the journal keeps what it has of them"
            if self.policy.changed == "error"
            else ""
        )
        counted = _counted(stand, len(self._earlier) - stand, unfinished)
        return f"{counted}; tasks are read as the run goes, and those that are {others} run too{refused}"

    def _would_stand(self, earlier: EarlierTask) -> bool:
        """Whether a task keeps its result if it has not changed."""
        return earlier.status is not None and (
            self.known(earlier.name) or earlier.status not in _AGAIN[self.policy.rerun]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the metrics."""
        return {"kept": self.kept, "again": self.again, "changed": list(self.changed), "removed": self.removed}


def _failed(place: _Place, message: str, kind: str = "ConfigurationError") -> ParallelTaskResult:
    problem = TaskError(type=kind, message=message, kind="configuration", retryable=False)
    return ParallelTaskResult(
        name=place.name, index=place.number, status=TaskStatus.FAILED, stop_reason="error", error=problem
    )


def _counted(stand: int, again: int, unfinished: int) -> str:
    cut = f", {unfinished:,} of which had not finished" if unfinished else ""
    runs = "1 task runs" if again == 1 else f"{again:,} tasks run"
    return f"goes on: {stand:,} of its results stand, {runs} again{cut}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more

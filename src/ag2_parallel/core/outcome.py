"""From attempts to a result: what each attempt left is added up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.results import AttemptRecord, ParallelTaskResult, TaskError, TaskStatus
from ag2_parallel.spans import MOST_SPANS, Span, longest
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from datetime import datetime

    from ag2_parallel.core.commands import Settle
    from ag2_parallel.ports import Answer, Snapshot
    from ag2_parallel.tasks import ParallelTask

NO_USAGE: Final = Usage()
"""Shared by the results of tasks that called no model: a run of a hundred thousand keeps 20 MB less."""


@dataclass(slots=True)
class AttemptLog:
    """The attempts of one task so far."""

    started_at: datetime | None = None
    first_start: float | None = None
    usage: Usage = NO_USAGE
    waited: float = 0.0
    last: Snapshot | None = None
    records: tuple[AttemptRecord, ...] = ()
    spans: tuple[Span, ...] = ()
    dropped_spans: int = 0
    _before: Usage | None = None
    _backoff: tuple[float, float] | None = None
    _starts: dict[int, float] = field(default_factory=dict)
    _ended: tuple[tuple[int, str], ...] = ()

    def started(self, number: int, now: float, stamp: datetime | None) -> None:
        """An attempt started."""
        self.waits_no_more(now)
        self._starts[number] = now
        if self.first_start is None:
            self.first_start, self.started_at = now, stamp

    def decided(self, number: int, status: TaskStatus, error: TaskError | None, snapshot: Snapshot, now: float) -> None:
        """It is decided how an attempt ended, though its code may still unwind."""
        self._before = self.usage if self.records else None
        self._add(snapshot)
        self.waited += snapshot.waited
        self.last = snapshot
        ended = self.how_ended(number) or "stopping"
        duration = now - self._starts[number]
        self._trace(number, status, error, snapshot, duration)
        record = AttemptRecord(number=number, status=status, duration=duration, error=error, ended=ended)
        self.records = (*self.records, record)

    def _trace(self, number: int, status: TaskStatus, error: TaskError | None, snapshot: Snapshot, took: float) -> None:
        """Put the attempt and what it did on the task's own time."""
        start = self._since_first(self._starts[number]) or 0.0  # of the first attempt one number for all results
        detail = f"{status}, {error.kind}" if error else status.value
        label = f"attempt {number}" if number > 1 else "attempt 1"  # nearly always: one text for all results
        whole = Span("attempt", label, start, start + took if start else took, detail)
        self.spans = (*self.spans, whole, *(span.later(start) for span in snapshot.spans.kept))
        self.dropped_spans += snapshot.spans.dropped

    def _since_first(self, moment: float) -> float:
        return moment - (self.first_start or 0.0)

    def trace(self, until: float) -> tuple[Span, ...]:
        """The longest spans of all attempts in the order of their starts; none ends later than the task."""
        over = len(self.spans) - MOST_SPANS
        if over > 0:
            self.spans = tuple(longest(self.spans))
            self.dropped_spans += over
        within = (span if span.end <= until else span._replace(end=max(span.start, until)) for span in self.spans)
        return tuple(sorted(within, key=lambda span: (span.start, -span.end)))

    def unwound(self, number: int, snapshot: Snapshot) -> None:
        """An attempt that was decided before its code ended has this now: a call that was cut counts too."""
        if self.records[-1].number == number:
            self._add(snapshot)

    def _add(self, snapshot: Snapshot) -> None:
        self.usage = snapshot.usage if self._before is None else self._before + snapshot.usage

    def backs_off(self, delay: float, now: float) -> None:
        """The next attempt starts in `delay` seconds at the earliest: that is waiting."""
        self._backoff = (now, delay)

    def waits_no_more(self, now: float) -> None:
        """A backoff is over, or cut short."""
        if self._backoff is not None:
            since, delay = self._backoff
            self.waited += min(delay, now - since)
            end = self._since_first(min(since + delay, now))
            span = Span("backoff", "before the next attempt", self._since_first(since), end)
            self.spans = (*self.spans, span)
            self._backoff = None

    def is_decided(self, number: int) -> bool:
        """Whether `decided` was called for this attempt."""
        return len(self.records) >= number

    def ended(self, number: int, how: str) -> None:
        """An attempt's code came to its end."""
        self._ended = (*(each for each in self._ended if each[0] != number), (number, how))
        self.records = tuple(replace(r, ended=how) if r.number == number else r for r in self.records)

    def how_ended(self, number: int) -> str | None:
        """How an attempt's code came to its end, if it did."""
        return next((how for ended, how in self._ended if ended == number), None)

    def unwinding(self) -> bool:
        """Whether an attempt's code has not come to its end."""
        return len(self._ended) < len(self._starts)

    @property
    def last_error(self) -> TaskError | None:
        """What the last decided attempt failed with."""
        return self.records[-1].error if self.records else None


def finished_result(
    task: ParallelTask,
    settle: Settle,
    error: TaskError | None,
    log: AttemptLog,
    answer: Answer | None,
    *,
    read_at: float,
    now: float,
    stamp: datetime,
) -> ParallelTaskResult:
    """The result of a settled task; times are monotonic, `stamp` is the wall time."""
    start = log.first_start
    log.waits_no_more(now)
    duration = 0.0 if start is None else now - start
    return ParallelTaskResult(
        name=task.name,
        index=settle.index,
        status=settle.status,
        output=answer.output if answer else None,
        stop_reason=settle.stop_reason or (answer.stop_reason if answer else "error"),
        ended=settle.ended,
        usage=NO_USAGE if log.usage == NO_USAGE else log.usage,
        error=error,
        attempts=settle.attempts,
        attempt_log=log.records,
        queued=(now if start is None else start) - read_at,
        duration=duration,
        waited=min(log.waited, duration) or 0.0,
        started_at=log.started_at,
        finished_at=stamp,
        metadata=task.metadata,
        group=task.group,
        replayed_calls=log.usage.replayed_calls,
        trace=log.trace(duration),
        dropped_spans=log.dropped_spans,
        **_left_behind(log.last, answer),
    )


def _left_behind(snapshot: Snapshot | None, answer: Answer | None) -> dict[str, Any]:
    if snapshot is None:
        return {}
    draft = snapshot.draft
    return {
        "summary": answer.summary if answer else draft.summary,
        "chat_history": tuple(draft.chat_history),
        "context": _copied(draft.context),
        "last_speaker": draft.last_speaker,
        "console": "".join(draft.console),
        "directory": Path(snapshot.directory) if snapshot.directory else None,
    }


def _copied(context: Any) -> dict[str, Any]:
    """What a task has as its context now; its thread may be changing it, or have put something else there."""
    for _ in range(3):
        try:
            return dict(context) if isinstance(context, dict) else {}
        except RuntimeError:  # changed size during iteration
            continue
    return {}


def amended(result: ParallelTaskResult, late: tuple[str, Usage] | None) -> ParallelTaskResult:
    """The result with what became known after it was published: how its last attempt's code ended, what it used in all."""
    if late is None:
        return result
    how, usage = late
    *earlier, last = result.attempt_log
    return replace(result, ended=how, usage=usage, attempt_log=(*earlier, replace(last, ended=how)))


def was_cut(settle: Settle) -> bool:
    """Whether a task's last attempt was ended from outside, and did not fail by itself."""
    cancelled = settle.status is TaskStatus.CANCELLED or settle.stop_reason == "budget"
    return cancelled or cut_short(settle.status, settle.error)


def cut_short(status: TaskStatus, error: TaskError | None) -> bool:
    """Whether an attempt that did not succeed was ended by a limit of its own, or with its process."""
    return status is TaskStatus.TIMED_OUT or (error is not None and error.kind == "worker_crashed")

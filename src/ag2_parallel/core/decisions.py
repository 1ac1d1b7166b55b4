"""What a failure, a limit and a stop lead to: another attempt, or an outcome and all that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ag2_parallel.core.breaker import Circuit, cause_of
from ag2_parallel.core.commands import Recovered, Retry, Settle, Stopping, Tripped
from ag2_parallel.core.retrying import decide
from ag2_parallel.core.scheduled import Verdict
from ag2_parallel.core.standstill import put_off
from ag2_parallel.core.timers import Alarm
from ag2_parallel.core.transitions import AttemptState, TaskEvent, TaskState
from ag2_parallel.results import TaskError, TaskStatus

if TYPE_CHECKING:
    import random

    from ag2_parallel.core.attempts import Attempts
    from ag2_parallel.core.backlog import Backlog
    from ag2_parallel.core.breaker import Trip
    from ag2_parallel.core.commands import Command
    from ag2_parallel.core.scheduled import AttemptRecord, SchedulePolicy, TaskRecord
    from ag2_parallel.core.timers import Timers

OUT_OF_TIME: Final = Verdict(TaskStatus.TIMED_OUT, "deadline")
"""The outcome of a task that ran into its own limit."""

_TASK_REASONS: Final = {
    "fail_fast": "fail_fast", "run_timeout": "run_deadline", "budget": "budget", "breaker": "breaker",
    "journal_error": "journal_error",
}  # fmt: skip
"""What the stop of a run is called in its tasks; any other is `cancelled`."""

_ENDED_BADLY: Final = (TaskStatus.FAILED, TaskStatus.TIMED_OUT)


class Decisions:
    """Settles tasks and begins stops.

    Attributes:
        stop_reason: What ends the run early, or None.
        task_reason: The same as the tasks are told; set once the run stops, and nothing starts any more.
        exhausted: What stops the run as soon as a task waits; None: nothing.
        circuit: Whether the breaker lets something start.
    """

    __slots__ = (
        "_attempts", "_backlog", "_count_waiting", "_fail_fast", "_rng", "_stops_running", "_timers", "circuit", "exhausted",
        "stop_reason", "task_reason",
    )  # fmt: skip

    def __init__(
        self, policy: SchedulePolicy, rng: random.Random, *, timers: Timers, attempts: Attempts, backlog: Backlog
    ) -> None:
        self.stop_reason: str | None = None
        self.task_reason: str | None = None
        self.exhausted: str | None = None
        self.circuit = Circuit(policy.breaker)
        self._stops_running = False
        self._fail_fast = policy.handle_errors == "fail_fast"
        self._count_waiting = policy.count_waiting
        self._rng = rng
        self._timers = timers
        self._attempts = attempts
        self._backlog = backlog

    # ---- outcomes

    def settle(self, record: TaskRecord, verdict: Verdict, now: float, out: list[Command]) -> None:
        """Decide a task's outcome, with all that follows for its dependants and for the run."""
        self._settle_with_dependants(record, verdict, out)
        if verdict.status is TaskStatus.SUCCEEDED:
            if self.circuit.succeeded(record.task.index):
                out.append(Recovered())
            return
        if self._fail_fast and verdict.status in _ENDED_BADLY and self.task_reason is None:
            self.begin_stop("fail_fast", stop_running=True, now=now, out=out)
        if record.attempts and verdict.status in _ENDED_BADLY:
            cause = cause_of(verdict.error, verdict.stop_reason)
            self._tripped(self.circuit.failed(record.task.index, cause), now, out)

    def keep(self, record: TaskRecord, status: TaskStatus, out: list[Command]) -> None:
        """A task keeps the outcome of an earlier life; that says nothing about how this life of the run goes."""
        self._settle_with_dependants(record, Verdict(status, None), out)

    def _settle_with_dependants(self, record: TaskRecord, verdict: Verdict, out: list[Command]) -> None:
        waiting = self.settle_alone(record, verdict, out)
        if verdict.status is TaskStatus.SUCCEEDED:
            self._backlog.release(waiting)
            return
        cascade = [(record.task.index, waiting)] if waiting else []
        while cascade:
            because, waiting = cascade.pop()
            skipped = Verdict(TaskStatus.SKIPPED, "dependency", because=because)
            for dependant in waiting:
                if dependant.state is not TaskState.SETTLED:
                    behind = self.settle_alone(dependant, skipped, out)
                    if behind:
                        cascade.append((dependant.task.index, behind))

    def settle_alone(self, record: TaskRecord, verdict: Verdict, out: list[Command]) -> list[TaskRecord]:
        """Decide a task's outcome and return those that wait for it."""
        self._timers.cancel(record.limit_alarm)
        self._timers.cancel(record.backoff_alarm)
        status, stop_reason, error, because = verdict
        out.append(Settle(record.task.index, record.attempts, status, stop_reason, error, record.ended, because))
        return self._backlog.settle(record, status)

    def failed(
        self,
        record: TaskRecord,
        verdict: Verdict,
        error: TaskError,
        now: float,
        out: list[Command],
        *,
        lost: bool = False,
    ) -> None:
        """An attempt failed or hit a limit of its own: another one follows, or `verdict` is the task's.

        After one that was lost with its process another follows in any case, at once.
        """
        if self.task_reason is not None:
            self.settle(record, verdict, now, out)
            return
        delay = 0.0 if lost else decide(record.task.retry, record.attempts - record.lost, error, self._rng)
        spent = delay if self._count_waiting else 0.0  # of the task's time; what is late may have used it up by now
        if delay is None or spent is None or (record.limit is not None and now + spent >= record.limit):
            self.settle(record, verdict, now, out)
            return
        if not self._count_waiting:
            put_off(record, self._timers, delay)
        out.append(Retry(record.task.index, record.attempts, delay, error))
        self._tripped(self.circuit.probe_failed(record.task.index, cause_of(error, None)), now, out)
        record.last = verdict
        record.not_before = now + delay
        if record.ended == "stopping":
            record.move(TaskEvent.STOPPED)
        else:
            record.move(TaskEvent.FAILED)
            self._back_off(record, now)

    def unwound(self, record: TaskRecord, now: float) -> None:
        """The code of a stopped attempt ended or was given up: the next one may follow, if one does."""
        if record.state is TaskState.UNWINDING:
            record.move(TaskEvent.UNWOUND)
            self._back_off(record, now)

    def undone(self, record: TaskRecord) -> Verdict:
        """The outcome of a task that does not run when the run stops: that of its last attempt, if it had one."""
        if record.attempts and record.last is not None:
            return record.last
        return Verdict(TaskStatus.SKIPPED, self.task_reason)

    # ---- the stop of the run

    def begin_stop(self, reason: str, *, stop_running: bool, now: float, out: list[Command]) -> None:
        """Stop the run, or go from letting running attempts finish to stopping them; else nothing."""
        if self.task_reason is not None and (self._stops_running or not stop_running):
            return
        word = _TASK_REASONS.get(reason, "cancelled")
        self.stop_reason = self.stop_reason or reason
        self.task_reason = self.task_reason or word
        self._stops_running = stop_running
        out.append(Stopping(reason, stop_running))
        for record in list(self._backlog.records.values()):
            if record.state is not TaskState.RUNNING:
                self.settle_alone(record, self.undone(record), out)
            elif stop_running and record.current is not None:
                self._attempts.stop(record.current, word, now, out)
                self.settle_alone(record, Verdict(TaskStatus.CANCELLED, word), out)

    def stop_if_exhausted(self, now: float, out: list[Command]) -> None:
        """Stop a run that may start nothing more, if a task waits."""
        waiting = self._backlog.added - self._backlog.settled - self._attempts.running
        if self.exhausted is not None and waiting:
            self.begin_stop(self.exhausted, stop_running=False, now=now, out=out)

    def _tripped(self, trip: Trip | None, now: float, out: list[Command]) -> None:
        if trip is None or self.task_reason is not None:
            return
        waiting = sum(not record.attempts for record in self._backlog.records.values())
        out.append(Tripped(str(trip.cause), trip.failures, waiting, trip.pause))
        if trip.pause is None:
            self.begin_stop("breaker", stop_running=False, now=now, out=out)
        else:
            self._timers.arm(now + trip.pause, Alarm.PROBE, self.circuit)

    # ---- limits

    def cut_off(self, index: int, number: int, error: TaskError, now: float, out: list[Command]) -> None:
        """An attempt may not go on: it is stopped and its task fails; nothing, if it was stopped before."""
        record = self._backlog.records.get(index)
        attempt = None if record is None else record.current
        if record is None or attempt is None or attempt.number != number or attempt.state is not AttemptState.RUNNING:
            return
        reason = "budget" if error.kind == "budget" else "error"
        self._attempts.stop(attempt, "budget", now, out)
        self.settle(record, Verdict(TaskStatus.FAILED, reason, error), now, out)

    def due(self, record: TaskRecord, _now: float, _out: list[Command]) -> None:
        """A backoff is over."""
        self._backlog.queue(record, TaskEvent.DUE)

    def task_limit(self, record: TaskRecord, now: float, out: list[Command]) -> None:
        """A task's limit is up."""
        if record.state is TaskState.RUNNING and record.current is not None:
            self._attempts.stop(record.current, "deadline", now, out)
        self.settle(record, OUT_OF_TIME, now, out)

    def attempt_limit(self, attempt: AttemptRecord, now: float, out: list[Command]) -> None:
        """An attempt's limit is up."""
        limit = attempt.record.task.attempt_timeout
        self._cut_short(attempt, "attempt_deadline", f"took longer than its limit of {limit:g} s", now, out)

    def idle_limit(self, attempt: AttemptRecord, now: float, out: list[Command]) -> None:
        """An attempt's idle alarm rang."""
        if self._attempts.is_idle(attempt, now):
            limit = attempt.record.task.idle_timeout
            self._cut_short(attempt, "idle", f"gave no sign of life for {limit:g} s", now, out)

    def give_up(self, attempt: AttemptRecord, now: float, out: list[Command]) -> None:
        """An attempt did not end on insisting."""
        self._attempts.abandon(attempt, out)
        self.unwound(attempt.record, now)

    def _cut_short(self, attempt: AttemptRecord, reason: str, what: str, now: float, out: list[Command]) -> None:
        self._attempts.stop(attempt, reason, now, out)
        error = TaskError(type="TimeoutError", message=f"attempt {attempt.number} {what}", kind="timeout")
        self.failed(attempt.record, Verdict(TaskStatus.TIMED_OUT, reason), error, now, out)

    def _back_off(self, record: TaskRecord, now: float) -> None:
        if record.not_before <= now:
            self._backlog.queue(record, TaskEvent.DUE)
        else:
            record.backoff_alarm = self._timers.arm(record.not_before, Alarm.BACKOFF, record)

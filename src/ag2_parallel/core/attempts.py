"""Attempts whose code has not ended: their slots, their limits, and what a stop leads to.

running ──stop──► stopping ──grace──► insisted ──insist_for──► abandoned
└─ holds a slot   └─ holds none ... its code may end at any of these points
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.core.commands import Ended, Insist, Returned, Stop
from ag2_parallel.core.scheduled import AttemptRecord, TaskRecord
from ag2_parallel.core.standstill import stand_still
from ag2_parallel.core.timers import Alarm
from ag2_parallel.core.transitions import AttemptEvent, AttemptState, IllegalTransitionError

if TYPE_CHECKING:
    from ag2_parallel.core.commands import Command
    from ag2_parallel.core.timers import Timers


class Attempts:
    """Every attempt from its start until its code ended, also those of settled tasks.

    Attributes:
        running: How many hold a slot.
        abandoned: How many were given up and have not come back.
    """

    __slots__ = ("_count_waiting", "_grace", "_insist_for", "_open", "_peak", "_timers", "abandoned", "running")

    def __init__(self, timers: Timers, *, grace: float, insist_for: float, count_waiting: bool) -> None:
        self.running = 0
        self.abandoned = 0
        self._peak = 0
        self._grace = grace
        self._insist_for = insist_for
        self._count_waiting = count_waiting
        self._timers = timers
        self._open: dict[tuple[int, int], AttemptRecord] = {}

    @property
    def peak(self) -> int:
        """The most that ran at once; a start that was refused never ran."""
        return max(self._peak, self.running)

    @property
    def unwinding(self) -> int:
        """How many were stopped and have neither ended nor been given up."""
        return len(self._open) - self.running - self.abandoned

    def begin(self, record: TaskRecord, now: float) -> float | None:
        """Start the next attempt of a task, whose time begins with the first; returns the attempt's own limit, or None."""
        task = record.task
        record.attempts += 1
        attempt = AttemptRecord(record, record.attempts, now)
        record.current = attempt
        self._open[task.index, attempt.number] = attempt
        self.running += 1
        if record.attempts == 1 and task.timeout is not None:
            record.limit = now + task.timeout
            record.limit_alarm = self._timers.arm(record.limit, Alarm.TASK_LIMIT, record)
        if task.idle_timeout is not None:
            attempt.idle_alarm = self._timers.arm(now + task.idle_timeout, Alarm.IDLE_LIMIT, attempt)
        if task.attempt_timeout is None:
            return None
        limit = attempt.limit = now + task.attempt_timeout
        attempt.limit_alarm = self._timers.arm(limit, Alarm.ATTEMPT_LIMIT, attempt)
        return limit

    def stop(self, attempt: AttemptRecord, reason: str, now: float, out: list[Command]) -> None:
        """Tell a running attempt to stop: its slot is free and its grace runs."""
        attempt.move(AttemptEvent.STOP)
        attempt.record.ended = "stopping"
        self._release(attempt, now)
        attempt.limit_alarm = self._timers.arm(now + self._grace, Alarm.GRACE, attempt)
        out.append(Stop(attempt.index, attempt.number, reason))

    def insist(self, attempt: AttemptRecord, now: float, out: list[Command]) -> None:
        """The grace of a stopped attempt is used up."""
        attempt.move(AttemptEvent.GRACE_OVER)
        attempt.limit_alarm = self._timers.arm(now + self._insist_for, Alarm.INSISTED, attempt)
        out.append(Insist(attempt.index, attempt.number))

    def abandon(self, attempt: AttemptRecord, out: list[Command]) -> None:
        """Give up an attempt that did not end on insisting."""
        attempt.move(AttemptEvent.GIVE_UP)
        self.abandoned += 1
        attempt.record.ended = "abandoned"
        out.append(Ended(attempt.index, attempt.number, "abandoned"))

    def end(self, index: int, number: int, how: str, now: float, out: list[Command]) -> tuple[TaskRecord, AttemptState]:
        """An attempt's code is at its end; returns its task and the state it was in."""
        attempt = self._take(index, number)
        was = attempt.state
        attempt.move(AttemptEvent.END)
        if attempt.record.current is attempt:  # and not the one after an abandoned one that comes back now
            attempt.record.current = None
        if was is AttemptState.ABANDONED:
            self.abandoned -= 1
            out.append(Returned(index, number))
            return attempt.record, was
        if was is AttemptState.RUNNING:
            self._release(attempt, now)
        else:
            self._timers.cancel(attempt.limit_alarm)
        attempt.record.ended = how
        out.append(Ended(index, number, how))
        return attempt.record, was

    def take_back(self, index: int, number: int) -> TaskRecord:
        """A start found no thread: it counts as never made, and its task is returned."""
        attempt = self._take(index, number)
        attempt.move(AttemptEvent.END)
        self.running -= 1
        self._timers.cancel(attempt.limit_alarm)
        self._timers.cancel(attempt.idle_alarm)
        record = attempt.record
        record.attempts -= 1
        record.current = None
        if not record.attempts:  # its time has not begun
            self._timers.cancel(record.limit_alarm)
            record.limit = None
        return record

    def state_of(self, index: int, number: int) -> AttemptState | None:
        """Where an attempt is; None once its code has ended."""
        attempt = self._open.get((index, number))
        return None if attempt is None else attempt.state

    def alive(self, index: int, number: int, now: float) -> None:
        """Note a sign of life. The alarm stays where it is and looks at this when it rings."""
        attempt = self._open.get((index, number))
        if attempt is not None:
            attempt.alive_at = now

    def waiting(self, index: int, number: int, *, begins: bool, on_person: bool, now: float) -> None:
        """A wait for a limit or a person begins or ends; waits may overlap."""
        attempt = self._open.get((index, number))
        if attempt is None:
            return
        if not self._count_waiting and not on_person and attempt.state is AttemptState.RUNNING:
            stand_still(attempt, self._timers, begins=begins, now=now)
        if begins:
            attempt.waits += 1
            return
        attempt.waits = max(0, attempt.waits - 1)
        attempt.alive_at = now
        idle = attempt.record.task.idle_timeout
        rang = attempt.idle_alarm is not None and attempt.idle_alarm[-1] is None
        if not attempt.waits and rang and attempt.state is AttemptState.RUNNING and idle is not None:
            attempt.idle_alarm = self._timers.arm(now + idle, Alarm.IDLE_LIMIT, attempt)

    def is_idle(self, attempt: AttemptRecord, now: float) -> bool:
        """Whether the idle limit is really up, its alarm having rung; if not, the alarm is set anew."""
        idle = attempt.record.task.idle_timeout
        if idle is None or attempt.waits:
            return False  # `waiting` sets the alarm when the wait is over
        due = attempt.alive_at + idle
        if due <= now:
            return True
        attempt.idle_alarm = self._timers.arm(due, Alarm.IDLE_LIMIT, attempt)
        return False

    def _take(self, index: int, number: int) -> AttemptRecord:
        attempt = self._open.pop((index, number), None)
        if attempt is None:
            raise IllegalTransitionError(f"attempt {number} of task {index} cannot end: it has ended or never started")
        return attempt

    def _release(self, attempt: AttemptRecord, now: float) -> None:
        if attempt.stands_still:
            attempt.stands_still = 1
            stand_still(attempt, self._timers, begins=False, now=now)
        self._peak = max(self._peak, self.running)
        self.running -= 1
        self._timers.cancel(attempt.limit_alarm)
        self._timers.cancel(attempt.idle_alarm)

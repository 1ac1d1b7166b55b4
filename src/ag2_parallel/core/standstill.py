"""Limits that do not run while a task waits, where waiting does not count; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.core.timers import Alarm

if TYPE_CHECKING:
    from ag2_parallel.core.scheduled import AttemptRecord, TaskRecord
    from ag2_parallel.core.timers import Timers


def stand_still(attempt: AttemptRecord, timers: Timers, *, begins: bool, now: float) -> None:
    """A wait of a running attempt begins or ends: its limit and its task's are put off by what all its waits take."""
    record = attempt.record
    if begins:
        if not attempt.stands_still:
            attempt.still_since = now
            timers.cancel(attempt.limit_alarm)
            timers.cancel(record.limit_alarm)
            attempt.limit_alarm = record.limit_alarm = None
        attempt.stands_still += 1
        return
    if not attempt.stands_still:
        return
    attempt.stands_still -= 1
    if attempt.stands_still:
        return
    waited = now - attempt.still_since
    if attempt.limit is not None:
        attempt.limit += waited
        attempt.limit_alarm = timers.arm(attempt.limit, Alarm.ATTEMPT_LIMIT, attempt)
    put_off(record, timers, waited)


def put_off(record: TaskRecord, timers: Timers, seconds: float) -> None:
    """A task's limit comes so much later."""
    if record.limit is not None:
        timers.cancel(record.limit_alarm)
        record.limit += seconds
        record.limit_alarm = timers.arm(record.limit, Alarm.TASK_LIMIT, record)

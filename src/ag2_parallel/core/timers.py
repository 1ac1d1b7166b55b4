"""Everything the schedule waits for, by time."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from ag2_parallel.core.lazy_heap import LazyHeap

if TYPE_CHECKING:
    from ag2_parallel.core.lazy_heap import Entry


class Alarm(IntEnum):
    """What comes due. At one and the same time the smaller goes first: the wider limit wins."""

    RUN_LIMIT = 0
    TASK_LIMIT = 1
    ATTEMPT_LIMIT = 2
    IDLE_LIMIT = 3
    GRACE = 4
    INSISTED = 5
    BACKOFF = 6
    HOLD = 7
    PATIENCE = 8
    PROBE = 9
    MORE = 10


class Timers:
    """Alarms in the order of their times; those of one time and kind in the order they were set."""

    __slots__ = ("_heap", "_serial")

    def __init__(self) -> None:
        self._heap = LazyHeap()
        self._serial = 0

    @property
    def held(self) -> int:
        """How many alarms are in memory, cancelled ones included."""
        return self._heap.held

    def arm(self, when: float, alarm: Alarm, target: object) -> Entry:
        """Set an alarm for `when`; `target` is what it is about."""
        self._serial += 1
        return self._heap.push(when, alarm, self._serial, item=target)

    def cancel(self, entry: Entry | None) -> None:
        """Take an alarm back; one that rang, or None, is left alone."""
        self._heap.discard(entry)

    def next_time(self) -> float | None:
        """When the next alarm rings, or None without one."""
        first = self._heap.first()
        return None if first is None else first[0]

    def ring(self, now: float) -> tuple[Alarm, Any] | None:
        """Take out the next alarm that is due with its target, or None."""
        first = self._heap.first()
        if first is None or first[0] > now:
            return None
        alarm = first[1]
        return alarm, self._heap.pop()

    def clear(self) -> None:
        """Cancel everything."""
        self._heap.clear()

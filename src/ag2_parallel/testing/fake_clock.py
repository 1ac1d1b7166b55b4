"""A clock that moves only when told to."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A `Clock` for tests: time stands still until `advance`. Safe from any thread.

    Args:
        monotonic: Where the monotonic time starts, in seconds.
        now: Where the wall time starts; aware. None: the first of January 2026, UTC.
    """

    def __init__(self, monotonic: float = 0.0, now: datetime | None = None) -> None:
        if now is not None and now.tzinfo is None:
            raise ValueError("the wall time of a FakeClock must be aware; give it a tzinfo, such as UTC")
        self._lock = threading.Lock()
        self._monotonic = monotonic
        self._now = _START if now is None else now.astimezone(UTC)

    def monotonic(self) -> float:
        """Seconds that never jump."""
        with self._lock:
            return self._monotonic

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on both times; not negative."""
        if seconds < 0:
            raise ValueError(f"time cannot advance by {seconds} seconds; use jump_wall to set the wall time back")
        with self._lock:
            self._monotonic += seconds
            self._now += timedelta(seconds=seconds)

    def jump_wall(self, seconds: float) -> None:
        """Set the wall time forward or back, as a correction of the system's clock does; the monotonic time stays."""
        with self._lock:
            self._now += timedelta(seconds=seconds)

"""One timer on the engine loop, set to the schedule's next moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ag2_parallel.ports import Clock

_SOON_ENOUGH = 0.0005
"""Seconds by which the timer may ring early or late, so that it is not set anew for each of a thousand tasks."""


class Alarm:
    """Rings at the nearest moment it was set to. Used on the loop alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, ring: Callable[[], None]) -> None:
        """Call `ring` when it is time; moments are those of `clock`."""
        self._loop = loop
        self._clock = clock
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None

    def set(self, when: float | None) -> None:
        """Ring at `when`, or earlier if it was set to an earlier moment; None changes nothing."""
        if when is None:
            return
        due = self._loop.time() + max(0.0, when - self._clock.monotonic())
        if self._handle is not None:
            if self._handle.when() <= due + _SOON_ENOUGH:
                return
            self._handle.cancel()
        self._handle = self._loop.call_at(due, self._now)

    def _now(self) -> None:
        self._handle = None
        self._ring()

    def cancel(self) -> None:
        """Ring no more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

"""An observer that hands events to a loop over them, with back-pressure."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.events import Event

_MOST_HELD = 1000
"""Events held for a slow loop; past that the observers' thread waits, and the run drops progress events."""


class EventTap:
    """Holds events until they are taken."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        self._closed = False
        self._wake: Callable[[], None] | None = None

    def __call__(self, event: Event) -> None:
        """Take an event; waits while too many are held."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) < _MOST_HELD or self._closed)
            if not self._closed:
                self._events.append(event)
            self._changed.notify_all()
            wake = self._wake
        if wake is not None:
            wake()

    def on_change(self, wake: Callable[[], None]) -> None:
        """Call `wake` on every event, for a loop that must not block."""
        self._wake = wake

    def take(self) -> Event | None:
        """The next event, or None if there is none now."""
        with self._changed:
            event = self._events.popleft() if self._events else None
            self._changed.notify_all()
        return event

    def wait(self) -> Event | None:
        """The next event; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._closed)
        return self.take()

    def close(self) -> None:
        """Hold nothing back any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

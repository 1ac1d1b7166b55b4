"""An observer that keeps what it is told."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar, overload

from ag2_parallel.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E", bound=Event)


class RecordingObserver:
    """An `Observer` for tests: keeps every event in order. Safe from any thread."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._arrived = threading.Condition()

    def __call__(self, event: Event, /) -> None:
        """Take one event."""
        with self._arrived:
            self._events.append(event)
            self._arrived.notify_all()

    @property
    def events(self) -> list[Event]:
        """Every event so far, in order."""
        with self._arrived:
            return list(self._events)

    @property
    def names(self) -> list[str]:
        """The class names of the events so far, in order."""
        return [event.type for event in self.events]

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class so far, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @overload
    def wait_for(self, wanted: type[E], timeout: float = 10.0) -> E: ...

    @overload
    def wait_for(self, wanted: Callable[[Event], object], timeout: float = 10.0) -> Event: ...

    def wait_for(self, wanted: type[Event] | Callable[[Event], object], timeout: float = 10.0) -> Event:
        """The first event that is wanted, waited for if it is not there yet.

        Args:
            wanted: A class of events, or a function that says whether an event is the one.
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: No such event came; the message lists those that did.
        """
        is_wanted = (lambda event: isinstance(event, wanted)) if isinstance(wanted, type) else wanted

        def found() -> Event | None:
            return next((event for event in self._events if is_wanted(event)), None)

        with self._arrived:
            event = self._arrived.wait_for(found, timeout)
        if event is None:
            wish = wanted.__name__ if isinstance(wanted, type) else "wanted event"
            raise TimeoutError(f"no {wish} within {timeout} seconds; seen: {', '.join(self.names) or 'nothing'}")
        return event

"""Events to observers: one at a time, in order, on a thread of their own."""

from __future__ import annotations

import logging
import threading
from collections import deque
from traceback import format_exc
from typing import TYPE_CHECKING, Any

from ag2_parallel.events import Event, RunWarning
from ag2_parallel.redaction import masked_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ag2_parallel.ports import Observer

_log = logging.getLogger("ag2_parallel.observers")

_MOST_QUEUED = 10_000
"""Past so many queued events the oldest droppable ones are dropped and counted."""


class Broadcast:
    """The event stream of one run."""

    def __init__(self, observers: Sequence[Observer], run_id: str, mask: Callable[[str], str] = masked_text) -> None:
        """The thread starts with the first thing there is to tell; `mask` hides the secrets of what is logged."""
        self._mask = mask
        self._observers = list(observers)
        self._wanted = _wanted(self._observers)
        self.run_id = run_id
        self._queue: deque[Event | Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.dropped = 0
        self._thread: threading.Thread | None = None

    def observed(self, kind: type[Event] | None = None) -> bool:
        """Whether anybody listens to events of that kind; None: to any."""
        return bool(self._observers) if kind is None or self._wanted is None else kind in self._wanted

    def emit(self, event: type[Event], /, **fields: Any) -> None:
        """Make an event and queue it; nothing at all where nobody wants one of its kind. Safe from any thread."""
        if not self._observers or (self._wanted is not None and event not in self._wanted):
            return
        self._put(event(run_id=self.run_id, **fields))

    def call(self, function: Callable[[], None]) -> None:
        """Call `function` on the observers' thread, in order with the events."""
        self._put(function)

    def _put(self, item: Event | Callable[[], None]) -> None:
        with self._changed:
            if len(self._queue) >= _MOST_QUEUED:
                self._drop_one()
            self._queue.append(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._tell_all, name="ag2-parallel-observers", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _drop_one(self) -> None:
        for position, queued in enumerate(self._queue):
            if isinstance(queued, Event) and queued.droppable:
                del self._queue[position]
                self.dropped += 1
                return

    def close(self, timeout: float) -> None:
        """Let the observers see what is queued, for `timeout` seconds at most."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        if self.dropped:
            _log.warning(
                "run %s: %d progress events were dropped because observers were slow", self.run_id, self.dropped
            )

    def _tell_all(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if not self._queue:
                    return
                item = self._queue.popleft()
            if isinstance(item, Event):
                for observer in list(self._observers):
                    self._tell(observer, item)
            else:
                self._call(item)

    def _tell(self, observer: Observer, event: Event) -> None:
        try:
            observer(event)
        except BaseException:
            self._observers.remove(observer)
            self._wanted = _wanted(self._observers)
            name = getattr(observer, "__qualname__", type(observer).__qualname__)
            _log.error("observer %s failed and is not told anything more\n%s", name, self._mask(format_exc()))
            self.emit(RunWarning, message=f"observer {name} failed and was dropped")

    def _call(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception:
            _log.error("showing a task's console failed\n%s", self._mask(format_exc()))


def _wanted(observers: Sequence[Observer]) -> frozenset[type[Event]] | None:
    """The kinds of events that are listened to; None: all. An observer that wants a few says so in a set, `wants`."""
    wants = [getattr(observer, "wants", None) for observer in observers]
    some = [
        each for each in wants if isinstance(each, set | frozenset)
    ]  # a stand-in from a mocking library has any attribute
    return frozenset[type[Event]]().union(*some) if len(some) == len(wants) else None

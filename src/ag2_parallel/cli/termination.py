"""SIGTERM stops a run as a second Ctrl-C does: what runs is stopped, what is done is kept."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any, Self

from ag2_parallel.events import Event, RunStopping

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_BETWEEN = 0.05
"""Seconds between the two interrupts, in which the main thread goes back to waiting for the run."""


class Termination:
    """Turns SIGTERM into interrupts for as long as its `with` block lasts; on the main thread only.

    A run takes the first interrupt as "start nothing new" and the second as "stop what runs". So the
    signal interrupts once, and once more as soon as the run says that it took the first.

    Attributes:
        received: Whether the signal came.
    """

    def __init__(self) -> None:
        self.received = False
        self._previous: Any = None
        self._main = threading.main_thread().ident

    def on_event(self, event: Event) -> None:
        """Watch a run: an observer."""
        if self.received and isinstance(event, RunStopping) and not event.stopped_running and self._main is not None:
            threading.Event().wait(_BETWEEN)
            signal.pthread_kill(self._main, signal.SIGTERM)

    def __enter__(self) -> Self:
        """Take over the signal."""
        self._previous = signal.signal(signal.SIGTERM, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give it back."""
        signal.signal(signal.SIGTERM, self._previous)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self.received = True
        raise KeyboardInterrupt

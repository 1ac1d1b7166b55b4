"""Progress as plain lines, for logs and terminals alike: no control characters, nothing redrawn."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, TextIO

from ag2_parallel.events import (
    Event,
    RunFinished,
    RunHint,
    RunStarted,
    RunStopping,
    RunWarning,
    TaskFinished,
    TaskRetrying,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_EACH_UP_TO: Final = 50
"""Runs of at most so many tasks get a line for each; larger ones a line now and then."""

_NOW_AND_THEN: Final = 5.0
"""Seconds between two lines of a large run."""


class ProgressLines:
    """An observer that writes lines about a run."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `stream`; None: whatever `sys.stderr` is at the time."""
        self._stream = stream
        self._clock = clock
        self._total: int | None = None
        self._counts: dict[str, int] = {}
        self._started = 0.0
        self._last = 0.0

    def __call__(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self._total, self._counts = event.total, {}
                self._started = self._last = self._clock()
                many = "tasks as they come" if event.total is None else f"{event.total} tasks"
                self._line(f"{many}, {event.max_workers} at once")
            case TaskFinished():
                self._counts[event.status] = self._counts.get(event.status, 0) + 1
                self._finished(event)
            case TaskRetrying():
                self._line(f"{event.task}: attempt {event.attempt} failed, again in {event.delay:.1f} s: {event.error}")
            case RunStopping():
                running = "running tasks are stopped" if event.stopped_running else "running tasks finish"
                self._line(f"stopping ({event.reason}): nothing new starts, {running}")
            case RunHint():
                self._line(f"hint: {event.message}")
            case RunWarning():
                self._line(f"warning: {event.message}")
            case RunFinished():
                self._line(f"done in {self._clock() - self._started:.1f} s: {self._summary()}")
            case _:
                pass

    def _finished(self, event: TaskFinished) -> None:
        each = self._total is not None and self._total <= _EACH_UP_TO
        if each:
            error = f": {event.error}" if event.error else ""
            self._line(f"{self._progress()} {event.task} {event.status} in {event.duration:.1f} s{error}")
        elif self._clock() - self._last >= _NOW_AND_THEN:
            self._last = self._clock()
            self._line(f"{self._progress()} {self._summary()}")

    def _progress(self) -> str:
        done = sum(self._counts.values())
        return f"[{done}/{self._total}]" if self._total is not None else f"[{done}]"

    def _summary(self) -> str:
        return (
            ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in self._counts.items())
            or "nothing to do"
        )

    def _line(self, text: str) -> None:
        first, _, more = text.partition("\n")
        shown = first[:400] + ("…" if more or len(first) > 400 else "")
        shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
        stream = self._stream or sys.stderr
        if stream is not None:  # pythonw and some services have none
            encoding = getattr(stream, "encoding", None) or "utf-8"
            stream.write(f"ag2-parallel: {shown}\n".encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()

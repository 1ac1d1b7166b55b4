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
    TaskKept,
    TaskRetrying,
)
from ag2_parallel.reporting.log_seen import log_is_seen
from ag2_parallel.reporting.words import clock, harmless, if_cut_off, many_tasks, summary

if TYPE_CHECKING:
    from collections.abc import Callable

_EACH_UP_TO: Final = 50
"""Runs of at most so many tasks get a line for each; larger ones a line now and then."""

_NOW_AND_THEN: Final = 5.0
"""Seconds between two lines of a large run at its beginning; later they come at a twentieth of its age."""

_SELDOM: Final = 60.0
"""Seconds between two lines at most."""

_MOST_NOTES: Final = 100
"""Hints and warnings that get a line; the log has all of them."""


class ProgressLines:
    """An observer that writes lines about a run: a line a task for a small one, a few hundred for any."""

    wants = frozenset({RunStarted, RunStopping, RunFinished, RunHint, RunWarning, TaskFinished, TaskKept, TaskRetrying})

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `stream`; None: whatever `sys.stderr` is at the time."""
        self._stream = stream
        self._clock = clock
        self._total: int | None = None
        self._counts: dict[str, int] = {}
        self._kept = 0
        self._started = 0.0
        self._last = 0.0
        self._notes = 0

    def __call__(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self._total, self._counts, self._kept, self._notes = event.total, {}, 0, 0
                self._started = self._last = self._clock()
                many = "tasks as they come" if event.total is None else many_tasks(event.total)
                self._line(f"{many}, {event.max_workers} at once")
                if event.how_to_resume is not None:
                    self._line(if_cut_off(event.how_to_resume))
            case TaskFinished():
                self._counts[event.status] = self._counts.get(event.status, 0) + 1
                self._finished(event)
            case TaskKept():
                self._kept += 1
            case TaskRetrying() if self._each:
                self._line(f"{event.task}: attempt {event.attempt} failed, again in {event.delay:.1f} s: {event.error}")
            case RunStopping() if event.reason != "interrupted" or not log_is_seen():
                running = "running tasks are stopped" if event.stopped_running else "running tasks finish"
                self._line(f"stopping ({event.reason}): nothing new starts, {running}")
            case RunHint():
                self._note(f"hint: {event.message}")
            case RunWarning() if not log_is_seen():
                self._note(f"warning: {event.message}")
            case RunFinished():
                self._line(f"done in {self._clock() - self._started:.1f} s: {self._summary()}")
            case _:
                pass

    @property
    def _each(self) -> bool:
        """Whether each task gets lines of its own."""
        return self._total is not None and self._total <= _EACH_UP_TO

    def _note(self, text: str) -> None:
        self._notes += 1
        if self._notes <= _MOST_NOTES:
            self._line(text)

    def _finished(self, event: TaskFinished) -> None:
        now = self._clock()
        if self._each:
            error = f": {event.error}" if event.error else ""
            self._line(f"{self._progress()} {event.task} {event.status} in {event.duration:.1f} s{error}")
        elif now - self._last >= min(_SELDOM, max(_NOW_AND_THEN, (now - self._started) / 20)):
            self._last = now
            self._line(f"{self._progress()} {self._summary()}{self._remaining(now)}")

    def _remaining(self, now: float) -> str:
        ran = sum(self._counts.values())
        if self._total is None or not ran or ran + self._kept >= self._total:
            return ""
        return f", about {clock((now - self._started) / ran * (self._total - ran - self._kept))} left"

    def _progress(self) -> str:
        done = sum(self._counts.values()) + self._kept
        return f"[{done}/{self._total}]" if self._total is not None else f"[{done}]"

    def _summary(self) -> str:
        return summary(self._counts, self._kept)

    def _line(self, text: str) -> None:
        shown = harmless(text)
        stream = self._stream or sys.stderr
        if stream is not None:  # pythonw and some services have none
            encoding = getattr(stream, "encoding", None) or "utf-8"
            stream.write(f"ag2-parallel: {shown}\n".encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()

"""Progress that is drawn again and again, on a terminal or in a notebook."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from ag2_parallel.redaction import masked_text
from ag2_parallel.reporting import words
from ag2_parallel.reporting.run_view import WANTS, RunView
from ag2_parallel.reporting.terminal import Screen, StandIns
from ag2_parallel.reporting.terminal_picture import TerminalPicture

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from ag2_parallel.events import Event

_log = logging.getLogger("ag2_parallel.progress")

_BETWEEN: Final = 0.2
"""Seconds between two drawings; nobody reads faster."""

_LAST_DRAWING: Final = 1.0
"""Seconds that the end of a run waits for a drawing that is under way."""

_drawing = threading.Lock()
"""Held by the one display that draws: a terminal has one bottom."""


class Surface(Protocol):
    """What a display is drawn on."""

    def open(self) -> bool:
        """Get ready; False if it cannot be had."""

    def picture(self, view: RunView, now: float, *, last: bool) -> Callable[[], None]:
        """What shows the state; called while the state stands still, and what it returns when it may move on."""

    def leave(self) -> None:
        """Leave everything as it was; does not block."""


class LiveDisplay:
    """An observer whose state a thread of its own draws some times a second."""

    wants = WANTS

    def __init__(self, surface: Surface, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is drawn before `open`."""
        self._surface = surface
        self._clock = clock
        self._view = RunView(started=clock())
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> bool:
        """Begin to draw; False where nothing can be drawn."""
        if not self._surface.open():
            return False
        self._thread = threading.Thread(target=self._draw_on, name="ag2-parallel-progress", daemon=True)
        self._thread.start()
        return True

    def __call__(self, event: Event) -> None:
        """Take one event."""
        with self._lock:
            self._view.take(event, self._clock())

    def _draw_on(self) -> None:
        while not self._over.wait(_BETWEEN) and self._draw(last=False):
            pass

    def _draw(self, *, last: bool) -> bool:
        try:
            with self._lock:
                show = self._surface.picture(self._view, self._clock(), last=last)
            show()  # a terminal that is held with Ctrl-S keeps nobody but this thread
        except Exception as error:  # a display that breaks is no reason to harm the run
            _log.warning("the progress display broke: %s", masked_text(f"{type(error).__name__}: {error}"))
            return False
        return True

    def close(self) -> None:
        """Draw the final state and stop. A second call does nothing."""
        if self._thread is None:
            return
        thread, self._thread = self._thread, None
        self._over.set()
        thread.join(_LAST_DRAWING)
        try:
            if not thread.is_alive():
                self._draw(last=True)
        finally:
            self._surface.leave()


class TerminalSurface:
    """The bottom of a terminal."""

    def __init__(self, stream: TextIO, picture: TerminalPicture) -> None:
        """Draw on `stream`."""
        self._screen = Screen(stream)
        self._picture = picture
        self._stand_ins = StandIns(self._screen)

    def open(self) -> bool:
        """Stand in for the standard streams, unless another display is drawing."""
        if not _drawing.acquire(blocking=False):
            return False
        self._stand_ins.place()
        return True

    def picture(self, view: RunView, now: float, *, last: bool) -> Callable[[], None]:
        """The notes for good, the state below them; at the end the full bar and what became of the tasks for good."""
        notes, view.notes = [f"ag2-parallel: {words.harmless(note)}" for note in view.notes], []
        if not last:
            lines = self._picture.lines(view, now)
            return lambda: self._show(notes, lines)
        took = words.clock(now - view.started)
        done = f"ag2-parallel: done in {took}: {words.summary(view.counts, view.kept)}"
        left = [*notes, self._picture.bar(view, now), done]
        return lambda: self._screen.close(left)

    def _show(self, notes: list[str], lines: list[str]) -> None:
        if notes:
            self._screen.add(notes)
        self._screen.draw(lines)

    def leave(self) -> None:
        """Let the standard streams go where they went."""
        self._stand_ins.remove()
        _drawing.release()


def terminal_display() -> LiveDisplay | None:
    """A display on the terminal behind `sys.stderr`; None where nothing can be drawn."""
    picture = TerminalPicture(sys.stderr)
    return LiveDisplay(TerminalSurface(sys.stderr, picture)) if picture.usable else None

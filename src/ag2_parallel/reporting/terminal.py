"""A few lines at the bottom of a terminal that are drawn again and again, and everything else above them, whole.

::

    what tasks print, log records ...     the terminal's own scrollback
    █                                     an empty line, where the cursor rests
      case 17   12 s  asks gpt-4o-mini    the drawn lines
    ━━━━━━━━╸━━━━━━━━  17/50

The cursor rests above the drawn lines, at the start of an empty one. Whoever writes a line to the terminal past us, such
as a log handler that holds the real stream, therefore writes it whole and in its place; the next drawing follows below.
What goes through `sys.stdout` and `sys.stderr` passes a stand-in, which takes the drawn lines away first.
"""

from __future__ import annotations

import io
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CLEAR = "\r\x1b[J"
"""To the start of the line, and nothing from there on."""

_PATIENCE = 1.0
"""Seconds that one waits for another to have written."""


class Screen:
    """The drawn lines of one terminal. Safe from any thread."""

    def __init__(self, stream: TextIO) -> None:
        """Draw on `stream`; nothing yet."""
        self._stream = stream
        self._lock = threading.Lock()
        self._drawn = False
        self._mid_line = False
        self._closed = False

    def draw(self, lines: Sequence[str]) -> None:
        """Draw the lines in place of those before. Nothing while somebody's line is unfinished."""
        with self._turn():
            if self._closed or self._mid_line:
                return
            self._write(_CLEAR + "".join(f"\n{line}" for line in lines) + f"\r\x1b[{len(lines)}A")
            self._drawn = True

    def add(self, lines: Sequence[str]) -> None:
        """Add lines above the drawn ones, for good."""
        with self._turn():
            if not self._closed:
                self._write(self._clear() + "".join(f"{line}\n" for line in lines))

    def pass_on(self, stream: TextIO, text: str) -> None:
        """Let somebody's text through, the drawn lines out of its way."""
        with self._turn():
            cleared = self._clear()
            if cleared:
                self._write(cleared)
            self._mid_line = not text.endswith("\n")
            stream.write(text)
            stream.flush()

    def close(self, last: Sequence[str]) -> None:
        """Take the drawn lines away and leave the last ones for good."""
        with self._turn():
            if not self._closed:
                start = "\n" if self._mid_line else ""
                self._write(self._clear() + start + "".join(f"{line}\n" for line in last))
                self._closed = True

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One at a time. A thread that was stopped while it had its turn keeps the others for a second, and once."""
        lock = self._lock
        taken = lock.acquire(timeout=_PATIENCE)
        if not taken:
            self._lock = threading.Lock()
        try:
            yield
        finally:
            if taken:
                lock.release()

    def _clear(self) -> str:
        drawn, self._drawn = self._drawn, False
        return _CLEAR if drawn else ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


_stand_ins: list[_StandIn] = []
"""One for each stream there ever was: code may hold it after it was taken away, and then writes straight through."""

_lock = threading.Lock()


class _StandIn(io.TextIOBase):
    """Stands in for `sys.stdout` or `sys.stderr` while lines are drawn on its terminal.

    `print` writes a text and then its line's end; another thread may come in between. So each thread's text is held
    until its line is whole, or flushed.
    """

    def __init__(self, real: TextIO) -> None:
        self.real = real
        self.screen: Screen | None = None
        self._held: dict[int, str] = {}

    def write(self, text: str) -> int:
        if self.screen is None:
            return self.real.write(text)
        whole, end, rest = text.rpartition("\n")
        thread = threading.get_ident()
        if end:
            self._let_through(self._held.pop(thread, "") + whole + end)
        if rest:
            self._held[thread] = self._held.get(thread, "") + rest
        return len(text)

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        self._let_through(self._held.pop(threading.get_ident(), ""))
        self.real.flush()

    def release(self) -> None:
        """Nothing is drawn any more: let everything through."""
        self.screen = None
        while self._held:
            self._let_through(self._held.popitem()[1])

    def _let_through(self, text: str) -> None:
        screen = self.screen
        if not text:
            return
        if screen is None:
            self.real.write(text)
        else:
            screen.pass_on(self.real, text)

    def isatty(self) -> bool:
        return self.real.isatty()

    def fileno(self) -> int:
        return self.real.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.real.encoding

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class StandIns:
    """Those of one display: put in place, and taken away again unless somebody else is there by then."""

    def __init__(self, screen: Screen) -> None:
        """Nothing is in place."""
        self._screen = screen
        self._placed: list[tuple[str, _StandIn]] = []

    def place(self) -> None:
        """Stand in for the standard streams that are terminals."""
        for name in ("stdout", "stderr"):
            real = getattr(sys, name)
            if is_terminal(real):
                stand_in = _stand_in(real)
                stand_in.screen = self._screen
                setattr(sys, name, stand_in)
                self._placed.append((name, stand_in))

    def remove(self) -> None:
        """Let texts go where they went before."""
        for name, stand_in in self._placed:
            stand_in.release()
            if getattr(sys, name) is stand_in:
                setattr(sys, name, stand_in.real)
        self._placed.clear()


def _stand_in(real: TextIO) -> _StandIn:
    if isinstance(real, _StandIn):
        return real
    with _lock:
        found = next((each for each in _stand_ins if each.real is real), None)
        if found is None:
            found = _StandIn(real)
            _stand_ins.append(found)
        return found


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; closed, missing and strange ones are not."""
    try:
        return bool(stream is not None and stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False

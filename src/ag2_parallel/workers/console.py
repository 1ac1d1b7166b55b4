"""What tasks print: hidden, shown line by line with the task's name, or shown task by task.

AG2's own output comes through the task's stream. For the prints of tools and functions a proxy
stands in for `sys.stdout` while a run with `console="prefix"` or `"grouped"` is open; it passes
the prints of every other thread through.
"""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, Any, TextIO

from ag2_parallel.workers.attempt import CURRENT

if TYPE_CHECKING:
    from ag2_parallel.policies import Console
    from ag2_parallel.redaction import Redactor

_install_lock = threading.Lock()
_proxies: list[_StdoutProxy] = []
"""Every proxy there ever was, one for each stream: `print` in another thread may still be inside one that was taken away."""

_installed: _StdoutProxy | None = None
_open_runs = 0


class ConsoleRouter:
    """Where the console text of one run's tasks goes."""

    def __init__(self, mode: Console, redactor: Redactor) -> None:
        """`mode` is the runner's `console` option."""
        self._mode = mode
        self._redactor = redactor
        self._lock = threading.Lock()
        self._stdout: TextIO = sys.stdout

    def open(self) -> None:
        """Catch the tasks' prints, unless the console is quiet."""
        if self._mode != "quiet":
            self._stdout = _install()

    def close(self) -> None:
        """Let prints go where they went before."""
        if self._mode != "quiet":
            _uninstall()

    def sink(self, task: str) -> list[str]:
        """The list that a task's console text is appended to."""
        return _PrefixedLines(task, self) if self._mode == "prefix" else []

    def show_block(self, task: str, text: str) -> None:
        """Print a finished task's text under a header, if tasks are shown one by one."""
        if self._mode == "grouped" and text.strip():
            text = self._redactor.text(text)
            end = "" if text.endswith("\n") else "\n"
            self._write(f"===== {_harmless(task)} =====\n{_harmless(text)}{end}")

    def show_line(self, task: str, line: str) -> None:
        """Print one whole line with the task's name."""
        self._write(f"{_harmless(task)} | {_harmless(self._redactor.text(line))}\n")

    def _write(self, text: str) -> None:
        with self._lock:
            encoding = getattr(self._stdout, "encoding", None) or "utf-8"
            try:
                self._stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
                self._stdout.flush()
            except (OSError, ValueError):  # stdout is closed, or its reader is gone: there is nobody to show it to
                return


class _PrefixedLines(list[str]):
    """Console text of one task that shows each line as soon as it is whole."""

    def __init__(self, task: str, router: ConsoleRouter) -> None:
        super().__init__()
        self._task = task
        self._router = router
        self._rest = ""

    def append(self, text: str) -> None:
        super().append(text)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._router.show_line(self._task, line)


class _StdoutProxy(io.TextIOBase):
    """Stands in for `sys.stdout`: prints of attempts go to their console, all others pass through."""

    def __init__(self, real: TextIO) -> None:
        self.real = real

    def write(self, text: str) -> int:
        attempt = CURRENT.get()
        if attempt is None:
            return self.real.write(text)
        attempt.draft.console.append(attempt.redactor.text(text))
        return len(text)

    def flush(self) -> None:
        self.real.flush()

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


def _install() -> TextIO:
    global _open_runs, _installed  # noqa: PLW0603 - `sys.stdout` is one for the process, and so is its proxy
    with _install_lock:
        _open_runs += 1
        if _installed is None:
            _installed = next((proxy for proxy in _proxies if proxy.real is sys.stdout), None)
            if _installed is None:
                _installed = _StdoutProxy(sys.stdout)
                _proxies.append(_installed)
            sys.stdout = _installed
        return _installed.real


def _uninstall() -> None:
    global _open_runs, _installed  # noqa: PLW0603 - as above
    with _install_lock:
        _open_runs -= 1
        if _open_runs == 0 and _installed is not None:
            if sys.stdout is _installed:  # unless someone else replaced it meanwhile
                sys.stdout = _installed.real
            _installed = None


def _harmless(text: str) -> str:
    """`text` without the control characters that move a terminal's cursor or change its state."""
    return "".join(c if c in "\n\t" or c.isprintable() or ord(c) > 0x9F else f"\\x{ord(c):02x}" for c in text)

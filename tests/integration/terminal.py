"""A terminal of a given size that a program runs in, and what stands on its screen."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import pyte


class Terminal:
    """Runs Python code on a pseudo-terminal; the screen and all that scrolled out of it, as text."""

    def __init__(self, code, *, columns=100, lines=30, stdout=None, **environment):
        self.screen = pyte.HistoryScreen(columns, lines, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=slave, stdout=stdout or slave, stderr=slave,
            env={**kept, "TERM": "xterm-256color", **environment}, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self._master = master
        self.seen = []
        """Every state of the screen that was read."""

    def run(self, timeout=50):
        """Read until the program has ended; its exit code."""
        end = time.monotonic() + timeout
        try:
            while time.monotonic() < end:
                if select.select([self._master], [], [], 0.1)[0]:
                    try:
                        data = os.read(self._master, 65536)
                    except OSError:  # the program has closed it
                        break
                    if not data:
                        break
                    self.raw += data
                    self._stream.feed(data)
                    self.seen.append([line.rstrip() for line in self.screen.display])
            return self._process.wait(max(0.1, end - time.monotonic()))
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._master)

    def text(self):
        """All lines from the first, those that scrolled away included."""
        width = self.screen.columns
        above = ["".join(line[x].data for x in range(width)).rstrip() for line in self.screen.history.top]
        lines = [*above, *(line.rstrip() for line in self.screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

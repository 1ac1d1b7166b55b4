"""One end of the wire: a socket, with a thread that writes and one that reads."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
from typing import TYPE_CHECKING, Any

from ag2_parallel.backends.frames import BrokenOffError, packed, read_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger("ag2_parallel")

_MOST_AT_ONCE = 256
"""Messages in one frame."""

_LARGE = 1 << 24
"""Bytes; a frame that is larger holds one message."""


class Link:
    """Sends messages in the order in which they were given, and reads those that come. Sending is safe from any thread."""

    def __init__(
        self,
        sock: socket.socket,
        spawn: Callable[[Callable[[], None]], None],
        broken: Callable[[], None] = lambda: None,
    ) -> None:
        """`spawn` runs a blocking function on a thread; `broken` is called when nothing can be sent any more."""
        self._sock = sock
        self._broken = broken
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._reader = sock.makefile("rb", buffering=1 << 16)
        spawn(self._write)

    def send(self, message: object) -> None:
        """Send a message, or what a function makes of it on the writing thread; what that returns as None is nothing."""
        self._queue.put(message)

    def messages(self) -> Iterator[list[Any]]:
        """What comes, some at a time, until the other side has gone. Blocking.

        Raises:
            WireError: If what comes is no message.
        """
        try:
            with contextlib.suppress(OSError, BrokenOffError):  # closed, by either side
                while (frame := read_frame(self._reader.read)) is not None:
                    yield frame
        finally:
            self._reader.close()
            self._queue.put(_END)

    def close(self) -> None:
        """Send what is queued, then hang up."""
        self._queue.put(_END)

    def hang_up(self) -> None:
        """Hang up at once."""
        self._queue.put(_END)
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def _write(self) -> None:
        ended = False
        while not ended:
            taken = [self._queue.get()]
            while len(taken) < _MOST_AT_ONCE and not self._queue.empty():
                taken.append(self._queue.get())
            ended = any(item is _END for item in taken)
            messages = [made for item in taken if item is not _END and (made := _made(item)) is not None]
            try:
                if messages:
                    self._send_frames(messages)
            except OSError:  # the other side has gone: whoever reads is told
                self._broken()
                ended = True
            except Exception:  # one of them cannot be packed: a mistake of ours must not hold up the others
                _log.exception("internal error of ag2-parallel: a message is not plain, please report this")
                ended = not self._one_by_one(messages)
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        self._sock.close()

    def _send_frames(self, messages: list[object]) -> None:
        """Send messages in one frame, or in several where it would be a large one: the other side takes only so much."""
        frame = packed(messages)
        if len(frame) <= _LARGE or len(messages) == 1:
            self._sock.sendall(frame)
            return
        del frame
        half = len(messages) // 2
        self._send_frames(messages[:half])
        self._send_frames(messages[half:])

    def _one_by_one(self, messages: list[object]) -> bool:
        """Send those that can be packed; whether the other side is still there."""
        for message in messages:
            with contextlib.suppress(Exception):
                frame = packed([message])
                try:
                    self._sock.sendall(frame)
                except OSError:
                    return False
        return True


_END = object()


def _made(item: Any) -> object | None:
    if not callable(item):
        return item  # type: ignore[no-any-return]
    try:
        made: object | None = item()
    except BaseException:  # the thread goes on
        _log.exception("internal error of ag2-parallel, please report this")
        return None
    return made

"""What passes from the engine loop to a waiting thread: an answer's head, its bytes, its end.

The loop puts and never blocks; a thread gets and waits. The reader's lock is a bare one, taken
while there is nothing to read: a call costs one release, where a condition costs ten times that.
"""

from __future__ import annotations

import asyncio
from _thread import allocate_lock
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_BYTES: Final = 256 * 1024
"""Bytes that may wait for a slow reader before the server is kept waiting too."""

NOTHING_YET: Final = object()
"""What `take` gives while there is nothing to read."""


class Relay:
    """One writer on the loop, one reader in a thread."""

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        """`post` runs a function on the loop, soon."""
        self._post = post
        self._items: deque[Any] = deque()
        self._failure: BaseException | None = None
        self._ended = False
        self._ready = allocate_lock()
        self._ready.acquire()
        self._bytes_put = 0  # written by the loop alone
        self._bytes_taken = 0  # written by the reader alone
        self._room: asyncio.Future[None] | None = None

    def put(self, item: Any) -> None:
        """On the loop: hand one item over."""
        self._items.append(item)
        self._wake()

    async def put_bytes(self, chunk: bytes) -> None:
        """On the loop: hand bytes over, and wait while the reader is far behind."""
        self._bytes_put += len(chunk)
        self.put(chunk)
        if self._behind() <= _MOST_BYTES:
            return
        room = self._room = asyncio.get_running_loop().create_future()
        # The reader looks for `_room` after it took something, so one of the two sees the other.
        if self._behind() > _MOST_BYTES // 2:
            await room
        self._room = None

    def end(self) -> None:
        """On the loop: nothing follows."""
        self._ended = True
        self._wake()

    def fail(self, failure: BaseException, *, at_once: bool = False) -> None:
        """On the loop: the reader gets `failure`, after what it has not read yet or, `at_once`, in place of it."""
        if at_once:
            self._items.clear()
        if self._failure is None or at_once:
            self._failure = failure
        self._wake()

    def get(self) -> Any:
        """In the reader's thread: the next item, waiting for it; None at the end. Raises what failed."""
        while (item := self.take()) is NOTHING_YET:
            self._ready.acquire()
        return item

    def take(self) -> Any:
        """In the reader's thread: the same without waiting; `NOTHING_YET` where that would be needed."""
        try:
            item = self._items.popleft()
        except IndexError:
            if self._failure is not None:
                raise self._failure from self._failure.__cause__
            return None if self._ended else NOTHING_YET
        if isinstance(item, bytes):
            self._bytes_taken += len(item)
            if self._room is not None and self._behind() <= _MOST_BYTES // 2:
                self._post(self._make_room)
        return item

    def _behind(self) -> int:
        return self._bytes_put - self._bytes_taken

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _wake(self) -> None:
        # Only the loop releases, so that this check and the release are one step.
        if self._ready.locked():
            self._ready.release()

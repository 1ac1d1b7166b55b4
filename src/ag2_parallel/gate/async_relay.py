"""What passes from the engine loop to a coroutine on an attempt's private loop."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ag2_parallel.gate.relay import NOTHING_YET, Relay

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class AsyncRelay(Relay):
    """A `Relay` whose reader awaits instead of blocking its thread."""

    def __init__(self, post: Callable[[Callable[[], None]], None], loop: asyncio.AbstractEventLoop) -> None:
        """`post` runs a function on the engine loop, soon; `loop` is the reader's."""
        super().__init__(post)
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None

    async def receive(self) -> Any:
        """On the reader's loop: the next item, awaiting it; None at the end. Raises what failed."""
        while (item := self.take()) is NOTHING_YET:
            waiter = self._waiter = self._loop.create_future()
            # The writer looks for a waiter after it put something, so one of the two sees the other.
            if (item := self.take()) is not NOTHING_YET:
                self._waiter = None
                break
            await waiter
        return item

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            with suppress(RuntimeError):  # the reader's loop is closed: nobody reads any more
                self._loop.call_soon_threadsafe(_done, waiter)


def _done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)

"""Blocking calls of an attempt's coroutines, each on a thread of its own, which the attempt does not outlive.

A stop ends the wait for such a call at once, but not the call. So that nothing goes on unseen, the attempt's own
thread waits for them at its end: while one does not come back, the attempt has not ended, and is abandoned and
counted like one whose own thread is stuck. The stop signal reaches their threads as it does the attempt's.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.workers.daemon_threads import DaemonThreads
    from ag2_parallel.workers.stop_signal import StopSignal

T = TypeVar("T")


class BlockingCalls:
    """The blocking calls of one attempt."""

    __slots__ = ("_back", "_out", "_signal", "_threads")

    def __init__(self, threads: DaemonThreads, signal: StopSignal) -> None:
        """Calls run on `threads`, each with a branch of `signal`."""
        self._threads = threads
        self._signal = signal
        self._back = threading.Condition(threading.Lock())
        self._out = 0

    async def run(self, function: Callable[[], T]) -> T:
        """Call `function` on a thread, in a copy of the calling context; see `ports.AttemptScope.run_blocking`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            value: Any = None
            error: BaseException | None = None
            try:
                with self._signal.branch() as signal, signal.user_code():
                    value = context.run(function)
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, future, value, error)
            with self._back:
                self._out -= 1
                self._back.notify_all()

        with self._back:
            self._out += 1
        try:
            self._threads.run(job)
        except RuntimeError:  # can't start new thread
            with self._back:
                self._out -= 1
            raise
        return await future

    def join(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until every call is back, those included that anyio made for coroutines on `loop`."""
        with self._back:
            while self._out:
                self._back.wait()
        if "anyio" in sys.modules:
            for thread in threading.enumerate():
                if getattr(thread, "loop", None) is loop:
                    thread.join()


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):  # no future takes it
        error = RuntimeError(f"a blocking call raised {error!r}")
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)

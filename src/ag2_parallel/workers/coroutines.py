"""Running an attempt's coroutines on its private loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import TaskStopped
from ag2_parallel.workers.blocking_calls import BlockingCalls
from ag2_parallel.workers.private_loop import PrivateLoop, finish, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ag2_parallel.workers.daemon_threads import DaemonThreads
    from ag2_parallel.workers.stop_signal import StopSignal

_making = threading.Lock()
"""One for all attempts: hardly any has blocking calls."""

_UNWINDS = 1.0
"""Seconds for what a coroutine left behind on the loop to unwind."""


class Coroutines:
    """The private loop of one attempt, made when a coroutine first needs it."""

    __slots__ = ("_blocking", "_loop", "_name", "_signal", "_threads")

    def __init__(self, threads: DaemonThreads, signal: StopSignal, name: str) -> None:
        """A stop cancels what runs; `name` is shown in task listings."""
        self._threads = threads
        self._signal = signal
        self._name = name
        self._loop: PrivateLoop | None = None
        self._blocking: BlockingCalls | None = None

    @property
    def blocking(self) -> BlockingCalls:
        """The blocking calls of its coroutines."""
        with _making:
            if self._blocking is None:
                self._blocking = BlockingCalls(self._threads, self._signal)
            return self._blocking

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end; see `ports.AttemptScope.run_coroutine`."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is None:
                self._loop = PrivateLoop(self._threads)
            if not self._loop.is_running():  # it is where a blocking tool of a coroutine on it calls
                return self._run_on(self._loop, coroutine, None)
        return self._run_beside(coroutine)

    def _run_on(
        self, loop: PrivateLoop, coroutine: Coroutine[Any, Any, Any], context: contextvars.Context | None
    ) -> Any:
        work = loop.create_task(watched(coroutine), name=f"ag2-parallel {self._name}", context=context)
        with self._signal.on_stop(lambda: _call(loop, work.cancel)):
            try:
                return loop.run_until_complete(work)
            except asyncio.CancelledError:
                if self._signal.reason is not None:
                    raise TaskStopped(self._signal.reason) from None
                raise

    def _run_beside(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine for code that is inside a running loop and must have the value now."""
        done = threading.Event()
        box: list[tuple[Any, BaseException | None]] = []
        context = contextvars.copy_context()

        def job() -> None:
            loop = PrivateLoop(self._threads)
            try:
                box.append((self._run_on(loop, coroutine, context), None))
            except BaseException as error:
                box.append((None, error))
            finally:
                finish(loop, within=_UNWINDS)
                done.set()

        self._threads.run(job)
        done.wait()
        value, error = box[0]
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Let what was left behind unwind, wait for blocking calls, and close the loop."""
        loop = self._loop
        if loop is not None:
            finish(loop, within=_UNWINDS, before_closing=lambda: self.blocking.join(loop))


def _call(loop: PrivateLoop, function: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop is closed: the coroutine came to its end meanwhile
        loop.call_soon_threadsafe(function)

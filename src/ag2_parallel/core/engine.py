"""The engine: one daemon thread with one asyncio loop, where schedules are driven and model calls are made.

It never runs users' code. Other threads hand it functions through `post`, which wakes the loop up
once for any number of them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ag2_parallel.event_loops import own_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

_log = logging.getLogger("ag2_parallel")

_HEARTBEAT = 0.05
"""Seconds between two looks at how late the loop is."""

_CLOSING_TIME = 5.0


class Engine:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        """Start the thread; returns when its loop runs."""
        self.pid = os.getpid()
        self.loop = own_event_loop()
        self.lag_max = 0.0
        self.ended: Callable[[], None] = lambda: None
        """Called when the thread ends, also where users' code has closed what its loop waits on."""
        self._mail: deque[Callable[[], None]] = deque()
        self._called = False
        self._beats = 0
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="ag2-parallel-engine", daemon=True)
        self._thread.start()
        started.wait()

    def _run(self, started: threading.Event) -> None:
        self.loop.call_soon(started.set)
        try:
            self.loop.run_forever()
        finally:
            try:
                self.loop.close()
            finally:
                self.ended()

    def is_current_thread(self) -> bool:
        """Whether the caller runs on the engine's own thread, which must never wait."""
        return threading.current_thread() is self._thread

    def post(self, function: Callable[[], None]) -> None:
        """Run `function` on the loop soon, after everything posted before; safe from any thread.

        Posting to an engine that is closed does nothing: a thread given up long ago may still report.
        """
        self._mail.append(function)
        if not self._called:
            self._called = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop is closed
                self._mail.clear()

    def _deliver(self) -> None:
        self._called = False
        for _ in range(len(self._mail)):  # what is posted meanwhile waits for its turn behind timers and sockets
            function = self._mail.popleft()
            try:
                function()
            except Exception:  # a mistake in one of them must not hold up the others
                _log.exception("internal error of ag2-parallel in %r, please report this", function)
        if self._mail and not self._called:
            self._called = True
            self.loop.call_soon(self._deliver)

    def call(self, coroutine: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        """Run a coroutine on the loop and wait for it from another thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def ask(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """What `function` returns on the loop, where nothing changes meanwhile; from any other thread."""

        async def answer() -> T:
            return function()

        return cast("T", self.call(answer(), timeout))

    def watch_lag(self, late: Callable[[float], None]) -> Callable[[], None]:
        """Call `late(seconds)` for each heartbeat with its delay; returns what ends that. On the loop only."""
        handle: list[asyncio.TimerHandle] = []

        def beat(due: float) -> None:
            now = self.loop.time()
            lag = max(0.0, now - due)
            self.lag_max = max(self.lag_max, lag)
            late(lag)
            handle[:] = [self.loop.call_at(now + _HEARTBEAT, beat, now + _HEARTBEAT)]

        due = self.loop.time() + _HEARTBEAT
        handle[:] = [self.loop.call_at(due, beat, due)]
        return handle[0].cancel

    def close(self) -> None:
        """End the loop and its thread; waits a few seconds at most."""
        if os.getpid() != self.pid:
            return  # a forked child has the object and not the thread
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CLOSING_TIME)

"""Threads of the project's own, which never hold up the interpreter's exit.

`concurrent.futures.ThreadPoolExecutor` joins its threads when the interpreter ends, so one stuck
call keeps the process alive for as long as it likes. These threads are daemons and nobody joins
them: one that does not come back is simply given up.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

Job = Callable[[], None]

MOST_IDLE: Final = 64
"""Threads that wait for a job. While tasks follow each other few do; a thousand that had to end at once would take 0.1 s."""

_ENDING_TIME: Final = 1.0
"""Seconds in which idle threads are seen to end; they need some thousandths of one."""


class DaemonThreads:
    """Runs jobs on daemon threads, reusing the idle ones, of which a few are kept; there is no limit on how many work.

    Safe from any thread.
    """

    def __init__(self, name: str) -> None:
        """`name` is shown in thread listings."""
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[tuple[queue.SimpleQueue[Job | None], threading.Thread]] = []
        self._started = 0
        self._closed = False

    def run(self, job: Job) -> None:
        """Run `job` on an idle thread, or on a new one.

        Args:
            job: Takes nothing and raises nothing.

        Raises:
            RuntimeError: If no thread is idle and none can be started.
        """
        with self._lock:
            idle = self._idle.pop() if self._idle else None
            self._started += idle is None
            number = self._started
        if idle is not None:
            idle[0].put(job)
            return
        threading.Thread(target=self._work, args=(job,), name=f"{self._name}-{number}", daemon=True).start()

    def close(self) -> None:
        """Let idle threads end now, and busy ones when their job does.

        Idle ones are gone when it returns; they end one after another, since all at once would fight for the
        interpreter lock. Nobody waits for busy ones.
        """
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        until = time.monotonic() + _ENDING_TIME
        for inbox, thread in idle:
            inbox.put(None)
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    def _work(self, job: Job | None) -> None:
        inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        while job is not None:
            job()
            job = None  # an idle thread must not keep the last job's objects alive
            with self._lock:
                if self._closed or len(self._idle) >= MOST_IDLE:
                    return
                self._idle.append((inbox, threading.current_thread()))
            job = inbox.get()


class DaemonExecutor(ThreadPoolExecutor):
    """An executor for `asyncio.to_thread` whose threads are daemons and never waited for.

    It is a `ThreadPoolExecutor` by type alone, since asyncio accepts no other default executor; no
    thread of that class is ever started.
    """

    def __init__(self, threads: DaemonThreads) -> None:
        """Jobs run on `threads`."""
        super().__init__(max_workers=1)
        self._daemons = threads

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn` on a daemon thread."""
        future: Future[Any] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._daemons.run(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - signature of Executor
        """Wait for nothing."""

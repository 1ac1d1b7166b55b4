"""Threads of the project's own, which never hold up the interpreter's exit.

`concurrent.futures.ThreadPoolExecutor` joins its threads when the interpreter ends, so one stuck
call keeps the process alive for as long as it likes. These threads are daemons and nobody joins
them: one that does not come back is simply given up.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

Job = Callable[[], None]


class DaemonThreads:
    """Runs jobs on daemon threads, reusing the idle ones; there is no limit on how many.

    Safe from any thread.
    """

    def __init__(self, name: str) -> None:
        """`name` is shown in thread listings."""
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[Job | None]] = []
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
            inbox = self._idle.pop() if self._idle else None
            self._started += inbox is None
            number = self._started
        if inbox is not None:
            inbox.put(job)
            return
        threading.Thread(target=self._work, args=(job,), name=f"{self._name}-{number}", daemon=True).start()

    def close(self) -> None:
        """Let idle threads end now and busy ones when their job does; waits for nothing."""
        with self._lock:
            self._closed = True
        self._end_one()

    def _end_one(self) -> None:
        """One idle thread ends, and tells the next: a thousand that wake at once would fight for the interpreter lock."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(None)

    def _work(self, job: Job | None) -> None:
        inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        while job is not None:
            job()
            job = None  # an idle thread must not keep the last job's objects alive
            with self._lock:
                if self._closed:
                    return
                self._idle.append(inbox)
            job = inbox.get()
        self._end_one()


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

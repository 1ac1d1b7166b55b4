"""Tasks handed to a run one by one while it goes on, each with a future for its result."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import Ag2ParallelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.core.feeder import Feeder
    from ag2_parallel.core.intake import LazyIntake
    from ag2_parallel.results import ParallelTaskResult


_NO_MORE: Final = "the run takes no more tasks: its results were asked for, or it was stopped, or it has ended"


class Submitted:
    """The open input of a run. Safe from any thread."""

    def __init__(self, feeder: Feeder, intake: LazyIntake, spawn: Callable[[Callable[[], None]], None]) -> None:
        """Futures are completed on threads that `spawn` finds, since their callbacks are the user's code."""
        self._feeder = feeder
        self._intake = intake
        self._spawn = spawn
        self._lock = threading.Lock()
        self._ending = threading.Lock()  # of its own: the end does not wait for what a task needs to be prepared
        self._futures: dict[int, Future[ParallelTaskResult]] = {}
        self._closed = False
        self._over = False

    def submit(self, item: Any) -> Future[ParallelTaskResult]:
        """Check a task and add it to the run.

        Raises:
            ConfigurationError: If the task cannot run; the run goes on without it.
            Ag2ParallelError: If the input was closed, or the run is being stopped.
        """
        self._feeder.wait_done()
        with self._lock:
            if self._closed or self._feeder.stopped:
                raise Ag2ParallelError(_NO_MORE)
            new = self._intake.checked(item)
            future: Future[ParallelTaskResult] = Future()
            future.set_running_or_notify_cancel()  # a task is cancelled with its run, not through its future
            with self._ending:
                if self._over:
                    raise Ag2ParallelError(_NO_MORE)
                self._futures[new.scheduled.index] = future
            self._feeder.feed_one(new)
        return future

    def settled(self, index: int, present: Callable[[], ParallelTaskResult]) -> None:
        """A task of the run is settled; on the engine loop. `present` gives the result as it is shown, and may block."""
        future = self._futures.pop(index, None)
        if future is not None:
            self._spawn(lambda: self._complete(future, present))

    def _complete(self, future: Future[ParallelTaskResult], present: Callable[[], ParallelTaskResult]) -> None:
        try:
            future.set_result(present())
        except Exception as error:  # the user's `redact` broke: whoever waits must not wait for ever
            future.set_exception(error)

    def close(self) -> None:
        """No more tasks will come."""
        with self._lock:
            already, self._closed = self._closed, True
        if not already:
            self._feeder.close()

    def finished(self) -> None:
        """The run has ended: what was submitted in the moment in which it stopped is no part of it."""
        with self._ending:
            self._over = True
            left, self._futures = self._futures, {}
        for future in left.values():
            self._spawn(partial(future.set_exception, Ag2ParallelError(_NO_MORE)))

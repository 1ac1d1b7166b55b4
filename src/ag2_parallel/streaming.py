"""Waiting for a run: for its end, or result by result, in blocking and in async code."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from ag2_parallel.assembly import ActiveRun
    from ag2_parallel.machinery import Lease
    from ag2_parallel.results import ParallelTaskResult

_LOOK = 0.2
"""Seconds between two looks: a signal that comes just before a thread begins to wait does not end the wait by itself."""

_log = logging.getLogger("ag2_parallel")

_STAGES = {
    1: "interrupted: nothing new starts, running tasks finish; interrupt again to stop them",
    2: "interrupted again: running tasks are stopped; interrupt once more to leave at once",
    3: "interrupted a third time: left at once",
}

_LAST_ROWS = 0.5
"""Seconds in which results that are there are handed over after the third interrupt, and each one after the second."""


def wait_for_end(active: ActiveRun, interrupts: int = 0) -> int:
    """Wait until a run is over; returns how often the user interrupted, `interrupts` times before this included.

    The first interrupt lets running tasks finish, the second stops them, the third waits no more.
    """
    handled = 0
    while True:
        try:
            while handled < interrupts:  # inside the `try`: the next interrupt may come while this one is handled
                handled += 1
                if handled > 2:
                    _tell(active, 3)
                    active.leave()
                    active.settle_soon()
                    return interrupts
                # Not on this thread: the next interrupt may come at any step of it, and would leave locks taken.
                _thread.start_new_thread(_stop, (active, handled))
            while not active.outlet.wait_finished(_LOOK):
                pass
        except KeyboardInterrupt:
            interrupts += 1
        else:
            return interrupts


def _stop(active: ActiveRun, stage: int) -> None:
    _tell(active, stage)
    active.stop("interrupted", stop_running=stage == 2)


def _tell(active: ActiveRun, stage: int) -> None:
    _log.warning("run %s %s%s", active.run_id, _STAGES[stage], _later(active), extra={"interrupts": stage})


def _later(active: ActiveRun) -> str:
    how = active.how_to_resume
    return "" if how is None else f"; go on later with: {how}"


def deliver(active: ActiveRun, take: Callable[[ParallelTaskResult], object]) -> int:
    """Hand each result to `take` as it is there, on a thread of its own, and wait until a run is over.

    Returns how often the user interrupted, which does what it does in `wait_for_end`. What `take` raises stops the
    run and is raised here.
    """
    failures: list[BaseException] = []
    taken = 0

    def hand_over() -> None:
        nonlocal taken
        try:
            while active.outlet.wait() and (result := active.take_result()) is not None:
                take(result)
                taken += 1
        except BaseException as error:  # raised below, on the caller's thread
            failures.append(error)
            active.stop("cancelled", stop_running=True)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(hand_over,), name="ag2-parallel-delivery", daemon=True)
    thread.start()
    interrupts = wait_for_end(active)
    while thread.is_alive():
        before, is_stuck = taken, False
        try:
            thread.join(_LOOK if interrupts < 2 else _LAST_ROWS)
            is_stuck = taken == before
        except KeyboardInterrupt:
            interrupts += 1
        if interrupts > 2 or (interrupts == 2 and is_stuck):  # whoever wants out does not wait for a `take` that hangs
            break
    if failures:
        raise failures[0]
    return interrupts


class ResultStream(Iterator["ParallelTaskResult"]):
    """Results as they come. The run starts with the first `next` and is stopped when the stream is closed.

    Leaving a `for` loop closes it once the stream is no longer referenced; `close()` or a `with` block
    does it at once, and waits until nothing of the run is left.
    """

    def __init__(self, active: ActiveRun, lease: Callable[[], Lease], ended: Callable[[], None]) -> None:
        """`ended` is called after the last result and may raise what the run ends with."""
        self._active = active
        self._make_lease = lease
        self._lease: Lease | None = None
        self._ended = ended
        self._closed = False

    def __next__(self) -> ParallelTaskResult:
        """The next result."""
        if self._closed:
            raise StopIteration
        if self._lease is None:
            self._lease = self._make_lease()
            self._active.start(self._lease.machinery)
        try:
            while not self._active.outlet.wait(_LOOK):
                pass
        except BaseException:
            self.close()
            raise
        result = self._active.take_result()
        if result is None:
            self.close()
            self._ended()
            raise StopIteration
        return result

    def close(self) -> None:
        """Stop what still runs, wait for it, and let go of the machinery."""
        if self._closed:
            return
        self._closed = True
        if self._lease is not None:
            end_run(self._active, self._lease)

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """See `close`."""
        self.close()

    def __del__(self) -> None:
        """Close without waiting: the garbage collector may call this on any thread, the engine's own included."""
        if not getattr(self, "_closed", True) and self._lease is not None:
            self._closed = True
            end_run_elsewhere(self._active, self._lease)


def end_run(active: ActiveRun, lease: Lease) -> None:
    """Stop a run that still goes on, wait for it, and let go of the machinery."""
    if lease.machinery.engine.is_current_thread():
        end_run_elsewhere(active, lease)
        return
    if not active.outlet.finished:
        active.stop("cancelled", stop_running=True)
        active.outlet.wait_finished()
    lease.end()


def end_run_elsewhere(active: ActiveRun, lease: Lease) -> None:
    """The same on a thread of its own, for callers that must not wait."""
    with contextlib.suppress(RuntimeError):  # the interpreter is on its way out
        threading.Thread(target=end_run, args=(active, lease), name="ag2-parallel-closer", daemon=True).start()


async def leased(lease: Callable[[], Lease]) -> Lease:
    """A lease made off the loop; given back if the caller is cancelled meanwhile."""
    making = asyncio.get_running_loop().run_in_executor(None, lease)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(lambda made: None if made.cancelled() or made.exception() else made.result().end())
        raise


async def drained(active: ActiveRun, lease: Callable[[], Lease]) -> AsyncGenerator[ParallelTaskResult, None]:
    """Start a run and yield its results on the caller's loop; leaving early stops it and waits for its clean-up."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    held = await leased(lease)
    active.outlet.on_change(lambda: wake_up(loop, changed.set))
    feeding = active.start(held.machinery)
    try:
        while True:
            changed.clear()
            while (result := active.take_result()) is not None:
                yield result
            if active.outlet.finished:
                return
            await changed.wait()
    finally:
        await uncancelled(clean_up(active, held, feeding))


async def clean_up(active: ActiveRun, held: Lease, feeding: asyncio.Task[None] | None) -> None:
    """Stop a run that still goes on, and let go of everything it had."""
    active.outlet.on_change(None)
    if not active.outlet.finished:
        active.stop("cancelled", stop_running=True)
        if feeding is not None:
            feeding.cancel()
        await asyncio.to_thread(active.outlet.wait_finished)
    if feeding is not None:
        await asyncio.gather(feeding, return_exceptions=True)
    await asyncio.to_thread(held.end)


async def uncancelled(coroutine: Coroutine[None, None, None]) -> None:
    """Wait for `coroutine` to its end, also while the waiting task is being cancelled."""
    work = asyncio.ensure_future(coroutine)
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as error:
            cancelled = error
    work.result()
    if cancelled is not None:
        raise cancelled


def wake_up(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Call a function on a loop that may be closed already."""
    with contextlib.suppress(RuntimeError):  # the caller's loop is closed
        loop.call_soon_threadsafe(function)

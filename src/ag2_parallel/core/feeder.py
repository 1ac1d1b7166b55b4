"""Reading tasks: on a thread of its own in the caller's context, with back-pressure."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import Ag2ParallelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Sequence

    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.core.intake import LazyIntake, Prepare
    from ag2_parallel.core.run import Run
    from ag2_parallel.tasks import ParallelTask

_LOOK = 0.05
"""Seconds between two looks at whether reading was given up."""


class Feeder:
    """Hands tasks to a run and ends its input; keeps what a source raised."""

    def __init__(
        self,
        run: Run,
        prepare: Prepare,
        is_prepared: Callable[[ParallelTask], bool],
        look_ahead: int,
        *,
        open_ended: bool = False,
    ) -> None:
        """At most `look_ahead` tasks are read from a source before a result is taken for each.

        An `open_ended` input goes on after the source: `feed_one` adds tasks until `close`.
        """
        self._open_ended = open_ended
        self.error: BaseException | None = None
        self.done = threading.Event()
        self._run = run
        self._prepare = prepare
        self._permits = threading.Semaphore(look_ahead)
        self._look_ahead = look_ahead
        self._widening = threading.Lock()
        self._is_prepared = is_prepared
        self._thread: threading.Thread | None = None
        self._wake_async: Callable[[], None] | None = None
        self._cancel_async: Callable[[], None] | None = None
        self.stopped = False
        """Whether nothing is read any more."""
        self.passes_by = False
        """Whether tasks are being read whose results stand, and none of those that will run is reached yet."""
        self._kept: deque[NewTask] = deque()
        self._kept_announced = False

    def handed_out(self) -> None:
        """A result was taken: one more task may be read. Safe from any thread."""
        self._permits.release()
        if self._wake_async is not None:
            self._wake_async()

    def widen(self, look_ahead: int) -> None:
        """Read so far ahead from now on; a smaller number than before changes nothing. Safe from any thread."""
        with self._widening:
            more = max(0, look_ahead - self._look_ahead)
            self._look_ahead += more
        for _ in range(more):
            self.handed_out()

    def stop(self) -> None:
        """Read nothing more. A source that is stuck in its `next` is given up."""
        self.stopped = True
        self.handed_out()
        if self._cancel_async is not None:
            self._cancel_async()

    @property
    def finished(self) -> bool:
        """Whether everything was read, or is given up."""
        return self.stopped or self.done.is_set()

    def feed_list(self, tasks: Sequence[NewTask]) -> None:
        """Add all tasks at once, and start them when what they need is prepared."""
        self._on_thread(lambda: self._feed_list(tasks))

    def feed_source(self, source: Iterable[Any], intake: LazyIntake) -> None:
        """Read a source as results are taken."""
        self._on_thread(lambda: self._feed_source(source, intake))

    def _on_thread(self, work: Callable[[], None]) -> None:
        context = contextvars.copy_context()
        target, args = context.run, (self._guarded, work)
        self._thread = threading.Thread(target=target, args=args, name="ag2-parallel-feeder", daemon=True)
        self._thread.start()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # raised again by the run's caller, with the results
            self.failed(error)
        finally:
            self.done.set()
            if not self._open_ended:
                self._run.close()

    def feed_one(self, new: NewTask) -> None:
        """Add a task behind whatever was fed before; blocking until what it needs is prepared."""
        self._add(new)

    def wait_done(self) -> None:
        """Wait until everything was read, or is given up.

        Raises:
            Ag2ParallelError: From within the source itself, which would wait for its own end.
        """
        if threading.current_thread() is self._thread and not self.done.is_set():
            raise Ag2ParallelError("the run's own source of tasks cannot submit tasks: yield them")
        while not self.done.wait(_LOOK) and not self.stopped:
            pass

    def close(self) -> None:
        """No more tasks will come."""
        self.wait_done()
        self._run.close()

    def failed(self, error: BaseException) -> None:
        """The source, or what its tasks need, raised: the run ends with it."""
        if self.stopped and isinstance(error, asyncio.CancelledError):
            return  # our own
        self.error = self.error or error
        self._run.stop("source_error", stop_running=False)

    def _feed_list(self, tasks: Sequence[NewTask]) -> None:
        self._run.pause(by="preparing")
        self._run.add(tasks)
        if not self._open_ended:
            self._run.close()
        for new in tasks:
            self._prepare(new.task)
        self._run.resume(by="preparing")

    def _feed_source(self, source: Iterable[Any], intake: LazyIntake) -> None:
        iterator = iter(source)
        try:
            while self._permits.acquire() and not self.stopped:
                try:
                    item = next(iterator)
                except StopIteration:
                    return
                self._take(item, intake)
        finally:
            self.passes_by = False
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def _take(self, item: Any, intake: LazyIntake) -> None:
        if self.stopped:
            return
        new = intake.next(item)
        self.passes_by = new.kept is not None
        if new.kept is None:
            self._add(new)
            return
        # It holds no more than a name, and many may come before the first that runs: none of them is waited for.
        self._permits.release()
        self._kept.append(new)
        if not self._kept_announced:  # nor does any wait for the next one, which may come late or never
            self._kept_announced = True
            self._run.add_kept(partial(self._kept_so_far, self._kept))

    def _kept_so_far(self, kept: deque[NewTask]) -> list[NewTask]:
        """All of one stretch that were read since the last time; on the loop."""
        self._kept_announced = False
        return [kept.popleft() for _ in range(len(kept))]

    def _add(self, new: NewTask) -> None:
        """Add a task first and prepare after, so that it has its result also where preparing is stuck or fails."""
        # What is kept after this task must not be added with what was kept before it: tasks are added in their order.
        self._kept, self._kept_announced = deque(), False
        if new.scheduled.problem is not None or self._is_prepared(new.task):
            self._run.add([new])
            return
        self._run.pause(by="preparing")
        self._run.add([new])
        try:
            self._prepare(new.task)
        except BaseException as error:  # raised again by the run's caller, with the results
            self.failed(error)
        self._run.resume(by="preparing")

    async def feed_async(self, source: AsyncIterable[Any], intake: LazyIntake) -> None:
        """Read an async source on the loop it belongs to, as results are taken."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        self._wake_async = lambda: _call_unless_closed(loop, woken.set)
        this = asyncio.current_task()
        assert this is not None
        self._cancel_async = lambda: _call_unless_closed(loop, this.cancel)
        iterator: Any = None
        try:
            iterator = aiter(source)
            while await self._permitted(woken) and not self.stopped:
                try:
                    item = await anext(iterator)
                except StopAsyncIteration:
                    return
                await asyncio.to_thread(self._take, item, intake)
        except BaseException as error:
            self.failed(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._cancel_async = None
            self.passes_by = False
            self._run.close()
            self.done.set()
            if (aclose := getattr(iterator, "aclose", None)) is not None:
                with contextlib.suppress(RuntimeError):
                    await aclose()

    async def _permitted(self, woken: asyncio.Event) -> bool:
        while not self._permits.acquire(blocking=False):
            woken.clear()
            if self._permits.acquire(blocking=False):
                return True
            await woken.wait()
        return True


def _call_unless_closed(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function)

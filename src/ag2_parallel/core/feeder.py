"""Reading tasks: on a thread of its own in the caller's context, with back-pressure."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Sequence

    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.core.intake import LazyIntake, Prepare
    from ag2_parallel.core.run import Run


class Feeder:
    """Hands tasks to a run and ends its input; keeps what a source raised."""

    def __init__(self, run: Run, prepare: Prepare, look_ahead: int, *, open_ended: bool = False) -> None:
        """At most `look_ahead` tasks are read from a source before a result is taken for each.

        An `open_ended` input goes on after the source: `feed_one` adds tasks until `close`.
        """
        self._open_ended = open_ended
        self.error: BaseException | None = None
        self.done = threading.Event()
        self._run = run
        self._prepare = prepare
        self._permits = threading.Semaphore(look_ahead)
        self._wake_async: Callable[[], None] | None = None
        self._stopped = False

    def handed_out(self) -> None:
        """A result was taken: one more task may be read. Safe from any thread."""
        self._permits.release()
        if self._wake_async is not None:
            self._wake_async()

    def stop(self) -> None:
        """Read nothing more."""
        self._stopped = True
        self.handed_out()

    def feed_list(self, tasks: Sequence[NewTask]) -> None:
        """Prepare what the tasks need, then add all of them at once."""
        self._on_thread(lambda: self._feed_list(tasks))

    def feed_source(self, source: Iterable[Any], intake: LazyIntake) -> None:
        """Read a source as results are taken."""
        self._on_thread(lambda: self._feed_source(source, intake))

    def _on_thread(self, work: Callable[[], None]) -> None:
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(self._guarded, work), name="ag2-parallel-feeder", daemon=True
        ).start()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failed(error)
        finally:
            self.done.set()
            if not self._open_ended:
                self._run.close()

    def feed_one(self, new: NewTask) -> None:
        """Prepare what a task needs and add it; blocking, after whatever was fed before."""
        self.done.wait()
        try:
            if new.scheduled.problem is None:
                self._prepare(new.task)
        finally:
            self._run.add([new])

    def close(self) -> None:
        """No more tasks will come."""
        self.done.wait()
        self._run.close()

    def _failed(self, error: BaseException) -> None:
        self.error = error
        self._run.stop("source_error", stop_running=False)

    def _feed_list(self, tasks: Sequence[NewTask]) -> None:
        try:
            for new in tasks:
                self._prepare(new.task)
        except BaseException as error:
            self._failed(error)
        self._run.add(tasks)

    def _feed_source(self, source: Iterable[Any], intake: LazyIntake) -> None:
        iterator = iter(source)
        try:
            while self._permits.acquire() and not self._stopped:
                try:
                    item = next(iterator)
                except StopIteration:
                    return
                self._take(item, intake)
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def _take(self, item: Any, intake: LazyIntake) -> None:
        new = intake.next(item)
        try:
            if new.scheduled.problem is None:
                self._prepare(new.task)
        finally:
            self._run.add([new])

    async def feed_async(self, source: AsyncIterable[Any], intake: LazyIntake) -> None:
        """Read an async source on the loop it belongs to, as results are taken."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        self._wake_async = lambda: _call_unless_closed(loop, woken.set)
        iterator = aiter(source)
        try:
            while await self._permitted(woken) and not self._stopped:
                try:
                    item = await anext(iterator)
                except StopAsyncIteration:
                    return
                await asyncio.to_thread(self._take, item, intake)
        except BaseException as error:
            self._failed(error)
            if not isinstance(error, Exception):
                raise
        finally:
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

"""One model call that an async client of another provider sends, on an attempt's private loop.

What happens on the engine loop is that of a `ForeignCall`; the coroutine awaits it. The client's own work
stays on the private loop, where a cut cancels it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.foreign_call import ForeignCall
from ag2_parallel.gate.recorder import Recorder
from ag2_parallel.gate.retry import GiveUp
from ag2_parallel.provider_errors import was_filtered

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from ag2_parallel.async_ports import ForeignRecord
    from ag2_parallel.results import TaskError

T = TypeVar("T")


class AsyncForeignCall(ForeignCall):
    """One call and its tries."""

    _work: asyncio.Task[Any] | None = None
    """What the client does now, on its own loop."""

    @property
    def on_the_loop(self) -> bool:
        """A cut ends it wherever it is."""
        return True

    async def made_soon(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        usage: Callable[[T], Mapping[str, Any] | None],
        failed: Callable[[Exception], TaskError],
        record: ForeignRecord[T] | None = None,
    ) -> T:
        """On the private loop: make the call, again where that may help. Raises what the last try raised."""
        if record is not None:
            asked = self._asked
            self._recorder = Recorder.of_foreign(self._attempt, asked.model, asked.endpoint, record.asked)
        try:
            if record is not None and self._recorder is not None:
                found = await self._soon(self._found)
                if found is not None:
                    return record.load(found.body)
            while True:
                await self._soon(self._admitted)
                try:
                    answer = await self._worked(work)
                except Exception as error:
                    again = await self._soon(partial(self._decided, failed(error)))
                    if isinstance(again, GiveUp):
                        if again.reason:
                            error.add_note(again.reason)
                        raise
                else:
                    body = None if record is None or self._recorder is None else record.dump(answer)
                    await self._soon(partial(self._answered, usage(answer), body, filtered=was_filtered(answer)))
                    return answer
        finally:
            self._attempt.post(self._left)

    def cut(self, reason: str) -> None:
        """On the engine loop: it is over, and its client's work is cancelled."""
        super().cut(reason)
        work = self._work
        if work is not None:
            with suppress(RuntimeError):  # the private loop is closed
                work.get_loop().call_soon_threadsafe(work.cancel)

    async def _worked(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self._work = doing = asyncio.ensure_future(work())
        try:
            if self._cut is not None:
                doing.cancel()
            return await doing
        except asyncio.CancelledError:
            if self._cut is not None:
                raise TaskStopped(self._cut) from None
            self._attempt.post(self._given_up)
            raise
        finally:
            self._work = None

    def _given_up(self) -> None:
        """On the engine loop: the task itself waits no longer."""
        self._count_in_flight()
        self._settle("closed")

    async def _soon(self, step: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """On the private loop: have a step done on the engine loop and await it. A cut raises `TaskStopped`."""
        self._attempt.side.owner.check_call()
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()  # a cancellation reaches the step through `_abandon`
        try:
            self._attempt.begin(lambda: self._begin(step, done))
            return await asyncio.wrap_future(done)
        except BaseException:
            self._attempt.post(self._abandon)
            raise

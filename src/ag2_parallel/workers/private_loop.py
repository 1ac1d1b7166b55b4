"""An event loop for one attempt, which owns no descriptor until its task does I/O of its own.

A stock selector loop opens three descriptors (an epoll handle and a pair of sockets to wake it up),
so a thousand attempts would need three thousand before doing anything. Most coroutines only ever
wait for timers, for other threads and for the gate, and that needs none: `_LazySelector` waits on a
condition, and becomes a real selector when the first file is registered.

It relies on hooks of `asyncio.SelectorEventLoop` (`_make_self_pipe`, `_close_self_pipe`, `_write_to_self`,
`_asyncgen_firstiter_hook`) that are the same in CPython 3.11 to 3.13; tests watch over them.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ag2_parallel.workers.daemon_threads import DaemonExecutor, DaemonThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping


class _LazySelector(selectors.BaseSelector):
    """Waits on a condition until something is registered."""

    def __init__(self) -> None:
        self._real: selectors.BaseSelector | None = None
        self._wakeup = threading.Event()

    @property
    def real(self) -> selectors.BaseSelector:
        if self._real is None:
            self._real = selectors.DefaultSelector()
        return self._real

    def wake(self) -> None:
        self._wakeup.set()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._real is not None:
            return self._real.select(timeout)
        self._wakeup.wait(timeout)
        self._wakeup.clear()
        return []

    def close(self) -> None:
        if self._real is not None:
            self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {} if self._real is None else self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        if self._real is None:
            raise KeyError(fileobj)
        return self._real.get_key(fileobj)


class PrivateLoop(asyncio.SelectorEventLoop):
    """The loop of one attempt; its default executor uses daemon threads."""

    _ready_for_files = False

    def __init__(self, threads: DaemonThreads) -> None:
        """Blocking calls of `asyncio.to_thread` run on `threads`."""
        self._lazy = _LazySelector()
        self._begun: WeakKeyDictionary[Any, None] = WeakKeyDictionary()
        super().__init__(self._lazy)
        self.set_default_executor(DaemonExecutor(threads))

    def _asyncgen_firstiter_hook(self, agen: Any) -> None:
        super()._asyncgen_firstiter_hook(agen)  # type: ignore[misc]
        self._begun[agen] = None

    async def shutdown_asyncgens(self) -> None:
        """Close the generators that were left half way: the outer ones first, which close those inside them.

        Asyncio closes all at once; where one is a context inside another, that fails, and is complained of.
        """
        for agen in list(self._begun):
            try:
                await agen.aclose()
            except Exception as error:
                message = f"an error occurred during closing of asynchronous generator {agen!r}"
                self.call_exception_handler({"message": message, "exception": error, "asyncgen": agen})
        await super().shutdown_asyncgens()

    def _make_self_pipe(self) -> None:
        """Put off until a file is watched, when waking up needs a descriptor."""

    def _close_self_pipe(self) -> None:
        if self._ready_for_files:
            super()._close_self_pipe()  # type: ignore[misc]

    def _write_to_self(self) -> None:
        if self._ready_for_files:
            super()._write_to_self()  # type: ignore[misc]
        self._lazy.wake()

    def _add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        self._get_ready_for_files()
        return super()._add_reader(fd, callback, *args)  # type: ignore[misc]

    def _add_writer(self, fd: Any, callback: Any, *args: Any) -> Any:
        self._get_ready_for_files()
        return super()._add_writer(fd, callback, *args)  # type: ignore[misc]

    def _get_ready_for_files(self) -> None:
        if not self._ready_for_files:
            self._ready_for_files = True
            super()._make_self_pipe()  # type: ignore[misc]


def finish(loop: PrivateLoop, *, within: float, before_closing: Callable[[], None] = lambda: None) -> None:
    """Cancel what is left on the loop, give it `within` seconds to unwind, call `before_closing`, and close the loop."""
    leftovers = asyncio.all_tasks(loop)
    for task in leftovers:
        task.cancel()
    if leftovers:
        # asyncio lets SystemExit and KeyboardInterrupt of any task through; a leftover's are nobody's.
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait(leftovers, timeout=within))
    for task in leftovers:
        if task.done() and not task.cancelled():
            task.exception()  # seen: a leftover's error is nobody's result
        elif not task.done():
            task._log_destroy_pending = False  # type: ignore[attr-defined] # noqa: SLF001 - given up on purpose, and the result says so
            loop.set_exception_handler(lambda _loop, _about: None)  # nor is what is said of its generators anybody's
    with contextlib.suppress(BaseException):
        loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), within))
    before_closing()
    loop.close()


async def watched(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run `coroutine`; a place of our own to be cancelled at, whatever the coroutine does with it."""
    return await coroutine

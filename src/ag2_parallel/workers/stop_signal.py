"""How one attempt is told to stop.

The engine sets the signal; the attempt's code meets it at its checkpoints as `TaskStopped`:

    set        the first checkpoint raises; after that the attempt unwinds: events pass, model calls are refused
    insisting  the grace is used up: every checkpoint raises, a little later each time, so that code which
               swallows the signal cannot spin; and the signal is raised once inside running Python code

Raising inside running code (`PyThreadState_SetAsyncExc`) may hit any bytecode of the thread. So
that it lands in the user's code and never between two lines of ours, the thread says when it is
in the user's code, and both sides do that under one lock. It is only ever raised once, and only in a
thread that used processor time since the last look: one that is blocked in a C call would not notice
before it comes back, and CPython 3.11 can lock up on it while tracing is on.

A further thread that works for the attempt, as a blocking tool's does, has a branch of the signal.
"""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ag2_parallel.errors import TaskStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SWALLOWED_DELAY = 0.02
"""Seconds by which each further raise is later than the one before."""

_LONGEST_DELAY = 0.5

_RUNNING = 0.0002
"""Seconds of processor time between two looks from which on a thread counts as running."""


class StopSignal:
    """The stop signal of one attempt."""

    __slots__ = (
        "_branches",
        "_in_user_code",
        "_insisting",
        "_lock",
        "_on_stop",
        "_processor_time",
        "_raised",
        "_thread",
        "cut_short",
        "interrupted",
        "reason",
    )

    def __init__(self) -> None:
        """Not set."""
        self.reason: str | None = None
        self.interrupted = False
        """Whether the signal was raised inside the thread's running code."""
        self.cut_short = False
        """Whether it was raised inside running code of this thread or of a branch's."""
        self._insisting = False
        self._raised = 0
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._in_user_code = False
        self._processor_time: float | None = None
        self._on_stop: tuple[Callable[[], None], ...] = ()
        self._branches: tuple[StopSignal, ...] = ()

    def set(self, reason: str, first: Callable[[], None] = lambda: None) -> None:
        """Make the next checkpoint raise. Only the first reason counts.

        Args:
            reason: Why.
            first: Called once the signal is set, before anybody else is told.
        """
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            callbacks, branches = self._on_stop, self._branches
        first()
        for branch in branches:
            branch.set(reason)
        for callback in callbacks:
            callback()

    def insist(self) -> None:
        """Make every checkpoint raise from now on, and tell those who listen once more."""
        with self._lock:
            self._insisting = True
            self._processor_time = self._used()
            callbacks, branches = self._on_stop, self._branches
        for branch in branches:
            branch.insist()
        for callback in callbacks:
            callback()

    def interrupt(self) -> bool:
        """Raise the signal inside the running code of its threads, where that is the user's; once in each.

        Returns:
            Whether that is done with. False: a thread is blocked or in our code; ask again later.
        """
        with self._lock:
            branches = self._branches
        done = [branch.interrupt() for branch in branches]
        self.cut_short = self.cut_short or any(branch.interrupted for branch in branches)
        return self._interrupt_own() and all(done)

    def _interrupt_own(self) -> bool:
        with self._lock:
            if self.interrupted or self._thread is None:
                return True
            before, self._processor_time = self._processor_time, self._used()
            blocked = before is not None and (self._processor_time or 0.0) - before < _RUNNING
            if blocked or not self._in_user_code:
                return False
            self.interrupted = self.cut_short = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TaskStopped))

            return True

    def _used(self) -> float | None:
        """Processor time of the thread; None where the platform does not tell it."""
        if self._thread is None or not hasattr(time, "pthread_getcpuclockid"):
            return None
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread))

    @contextmanager
    def on_stop(self, callback: Callable[[], None]) -> Iterator[None]:
        """While inside, call `callback` when the signal is set or insisted on; at once if it is set already."""
        with self._lock:
            self._on_stop = (*self._on_stop, callback)
            already = self.reason is not None
        if already:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._on_stop = tuple(each for each in self._on_stop if each is not callback)

    def check(self) -> None:
        """A checkpoint: raise once, and after the grace each time."""
        if self.reason is not None and (self._insisting or not self._raised):
            self._raise()

    def check_call(self) -> None:
        """The checkpoint before a model call: raise whenever the signal is set."""
        if self.reason is not None:
            self._raise()

    def _raise(self) -> None:
        self._raised += 1
        if self._raised > 1:
            time.sleep(min(_SWALLOWED_DELAY * self._raised, _LONGEST_DELAY))
        raise TaskStopped(self.reason or "cancelled")

    @contextmanager
    def branch(self) -> Iterator[StopSignal]:
        """While inside, a signal of its own for a further thread: set, insisted on and raised with this one."""
        made = StopSignal()
        with self._lock:
            self._branches = (*self._branches, made)
            reason, insisting = self.reason, self._insisting
        if reason is not None:
            made.set(reason)
        if insisting:
            made.insist()
        try:
            yield made
        finally:
            with self._lock:
                self._branches = tuple(each for each in self._branches if each is not made)

    def user_code(self) -> UserCode:
        """Mark what runs inside, on this thread, as the user's."""
        return UserCode(self)

    def enter(self) -> None:
        """This thread goes into the user's code."""
        self._thread = threading.get_ident()
        with self._lock:
            self._in_user_code = True

    @contextmanager
    def own_code(self) -> Iterator[None]:
        """Mark what runs inside as ours again, for calls from the user's code into the package."""
        with self._lock:
            signals = [self, *self._branches]
        with ExitStack() as stack:
            for signal in signals:
                stack.enter_context(signal.own_code_here())
            yield

    @contextmanager
    def own_code_here(self) -> Iterator[None]:
        """The same for this signal's own thread, its branches left aside."""
        with self._lock:
            inside = self._in_user_code and self._thread == threading.get_ident()
            if inside:
                self._in_user_code = False
        try:
            yield
        finally:
            if inside:
                with self._lock:
                    self._in_user_code = True

    def leave(self) -> None:
        """Leave the user's code: afterwards nothing is raised any more.

        A signal raised a moment before may still be under way, and lands in here. It is delivered at the
        next turn of a loop, so after a few turns it has come or never will. (Withdrawing it is no way:
        CPython would keep its interpreter-wide notice of it, and look for it at every turn for ever.)
        """
        for _ in range(2):
            try:
                with self._lock:
                    self._in_user_code = False
                    self._thread = None
                for _ in range(10):
                    pass
                break
            except TaskStopped:
                continue


class UserCode:
    """A stretch of the user's code; no generator, since it lasts as long as its attempt, and there may be thousands."""

    __slots__ = ("_signal",)

    def __init__(self, signal: StopSignal) -> None:
        """On the thread that `signal` is for."""
        self._signal = signal

    def __enter__(self) -> None:
        """It begins."""
        try:
            self._signal.enter()
        except BaseException:
            self._signal.leave()
            raise

    def __exit__(self, *_: object) -> None:
        """It is over."""
        self._signal.leave()

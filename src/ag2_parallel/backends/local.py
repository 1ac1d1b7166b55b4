"""Attempts on threads of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ag2_parallel.ports import AttemptGate, AttemptOrder, BackendListener, Snapshot

_ANSWER_TIME = 0.03
"""Seconds that an attempt has to end by itself after it was insisted, before its running code is interrupted."""


_LOOKED_AT_AGAIN = 1.0
"""Seconds between two looks at an abandoned attempt whose thread was blocked."""


class RunningAttempt(Protocol):
    """What this backend needs of an attempt."""

    @property
    def gate(self) -> AttemptGate:
        """Where its model calls pass."""

    @property
    def signal(self) -> Signal:
        """How it is told to stop."""

    def run(self) -> None:
        """Run to the end on the calling thread and report."""

    def snapshot(self) -> Snapshot:
        """What it has now."""

    def release(self) -> None:
        """Nobody needs it any more: let go of what holds on to it."""


class Signal(Protocol):
    """How an attempt is told to stop."""

    def set(self, reason: str, first: Callable[[], None]) -> None:
        """Raise at the next checkpoint; `first` is called before coroutines are cancelled."""

    def insist(self) -> None:
        """Raise at every checkpoint."""

    def interrupt(self) -> bool:
        """Raise inside running code, once; whether that is done with."""


class LocalBackend:
    """One attempt, one thread."""

    def __init__(
        self,
        *,
        spawn: Callable[[Callable[[], None]], None],
        make_attempt: Callable[[AttemptOrder, BackendListener], RunningAttempt],
        listener: BackendListener,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Attempts are made by `make_attempt` and run on threads that `spawn` finds."""
        self._spawn = spawn
        self._make_attempt = make_attempt
        self._listener = listener
        self._loop = loop
        self._attempts: dict[tuple[int, int], RunningAttempt] = {}

    def start(self, order: AttemptOrder) -> bool:
        """See `ports.Backend`."""
        attempt = self._make_attempt(order, self._listener)
        try:
            self._spawn(attempt.run)
        except RuntimeError:  # can't start new thread
            return False
        self._attempts[order.index, order.attempt] = attempt
        return True

    def stop(self, index: int, attempt: int, reason: str) -> None:
        """See `ports.Backend`."""
        running = self._attempts[index, attempt]
        # Cut first: a coroutine that is cancelled gives its call up, which then could not be told from none at all.
        running.signal.set(reason, lambda: running.gate.cut(reason))

    def insist(self, index: int, attempt: int) -> None:
        """See `ports.Backend`."""
        running = self._attempts.get((index, attempt))
        if running is not None:
            running.signal.insist()
            self._loop.call_later(_ANSWER_TIME, self._interrupt, index, attempt)

    def _interrupt(self, index: int, attempt: int) -> None:
        running = self._attempts.get((index, attempt))
        if running is not None and not running.signal.interrupt():
            self._loop.call_later(_LOOKED_AT_AGAIN, self._interrupt, index, attempt)

    def snapshot(self, index: int, attempt: int) -> Snapshot:
        """See `ports.Backend`."""
        return self._attempts[index, attempt].snapshot()

    def forget(self, index: int, attempt: int) -> None:
        """See `ports.Backend`."""
        over = self._attempts.pop((index, attempt), None)
        if over is not None:
            over.release()

"""The effects of one attempt: `once.Effects` on a task's receipts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn, Protocol

from ag2_parallel.errors import TaskStopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.records import Receipt, Receipts
    from ag2_parallel.workers.stop_signal import StopSignal


class Owner(Protocol):
    """The attempt whose effects they are."""

    def check_call(self) -> None:
        """Raise `TaskStopped` where it has to end."""

    def fail(self, error: Exception, /) -> None:
        """Its task fails so, and it has to end."""


_making = threading.Lock()
"""One for all attempts: hardly any has effects."""


class AttemptEffects:
    """Counts an attempt's effects and keeps them in its task's receipts."""

    __slots__ = ("_counts", "_find", "_owner", "_receipts", "_signal", "_task")

    def __init__(self, task: str, owner: Owner, signal: StopSignal, receipts: Callable[[str], Receipts]) -> None:
        """Nothing is asked of `receipts`, those of a task by its name, before the first effect; `signal` is the attempt's."""
        self._task = task
        self._owner = owner
        self._signal = signal
        self._find = receipts
        self._counts: dict[str, int] | None = None
        self._receipts: Receipts | None = None

    def numbered(self, call: str) -> str:
        """See `once.Effects`."""
        with _making:
            counts = self._counts = self._counts or {}
            number = counts[call] = counts.get(call, 0) + 1
        return f"{call} #{number}"

    def begin(self, key: str) -> Receipt | None:
        """See `once.Effects`."""
        self._owner.check_call()
        with self._signal.own_code():
            return self._found().begin(key)

    def finish(self, key: str, value: str) -> None:
        """See `once.Effects`."""
        with self._signal.own_code():
            self._found().finish(key, value)

    def withdraw(self, key: str) -> None:
        """See `once.Effects`."""
        with self._signal.own_code():
            self._found().withdraw(key)

    def fail(self, error: Exception) -> NoReturn:
        """See `once.Effects`."""
        with self._signal.own_code():
            self._owner.fail(error)
        raise TaskStopped("cancelled") from error

    def _found(self) -> Receipts:
        with _making:
            if self._receipts is None:
                self._receipts = self._find(self._task)
            return self._receipts

"""The effects of one attempt: `once.Effects` on a task's receipts."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, NoReturn

from ag2_parallel.errors import TaskStopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.records import Receipt, Receipts
    from ag2_parallel.workers.stop_signal import StopSignal


class AttemptEffects:
    """Counts an attempt's effects and keeps them in its task's receipts."""

    def __init__(
        self,
        receipts: Callable[[], Receipts],
        *,
        signal: StopSignal,
        check: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Nothing is asked of the receipts before the first effect.

        Args:
            receipts: Those of the task.
            signal: The attempt's.
            check: Raises `TaskStopped` where the attempt has to end.
            failed: Told why the task fails; the attempt has to end then.
        """
        self._find = receipts
        self._signal = signal
        self._check = check
        self._failed = failed
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._receipts: Receipts | None = None

    def numbered(self, call: str) -> str:
        """See `once.Effects`."""
        with self._lock:
            self._counts[call] += 1
            return f"{call} #{self._counts[call]}"

    def begin(self, key: str) -> Receipt | None:
        """See `once.Effects`."""
        self._check()
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
            self._failed(error)
        raise TaskStopped("cancelled") from error

    def _found(self) -> Receipts:
        with self._lock:
            if self._receipts is None:
                self._receipts = self._find()
            return self._receipts

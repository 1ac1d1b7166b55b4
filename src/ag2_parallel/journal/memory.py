"""What a run without a journal needs of one: effects that are not repeated when a task is tried again."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from ag2_parallel.journal.receipts import decided
from ag2_parallel.journal.tape import LiveTape
from ag2_parallel.records import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ag2_parallel.events import Event
    from ag2_parallel.records import CallTape, EarlierTask, Receipts
    from ag2_parallel.results import ParallelTaskResult


class MemoryRun:
    """A `records.RunJournal` that forgets everything at the end of the run; results are published at once."""

    def __init__(self, uncertain: str = "fail") -> None:
        """`uncertain` is as in `records.RunStore.open_run`."""
        self._uncertain = uncertain
        self._receipts: dict[str, MemoryReceipts] = {}
        self._lock = Lock()

    def earlier(self) -> Iterator[EarlierTask]:
        """Nothing."""
        return iter(())

    def result(self, name: str) -> ParallelTaskResult | None:  # noqa: ARG002 - as in the Protocol
        """Nothing."""
        return None

    def attempt_started(self, index: int, name: str, fingerprint: str, attempt: int) -> None:
        """Nothing to write down."""

    def attempt_ended(self, index: int, attempt: int, *, cut: bool) -> None:
        """Nothing to write down."""

    def settle(
        self,
        result: ParallelTaskResult,
        fingerprint: str,  # noqa: ARG002 - as in the Protocol
        *,
        cut: bool,  # noqa: ARG002
        published: Callable[[], None],
        if_none: bool = False,  # noqa: ARG002
    ) -> None:
        """The task is over: its effects are forgotten."""
        with self._lock:
            self._receipts.pop(result.name, None)
        published()

    def tape(self, index: int, name: str, attempt: int) -> CallTape:  # noqa: ARG002 - as in the Protocol
        """One that finds nothing."""
        return LiveTape()

    def receipts(self, name: str) -> Receipts:
        """The effects of a task, over its attempts."""
        with self._lock:
            return self._receipts.setdefault(name, MemoryReceipts(name, self._uncertain))

    def note(self, event: Event) -> None:
        """Nothing to write down."""

    def close(self, stop_reason: str | None) -> None:
        """Nothing to release."""


class MemoryReceipts:
    """The effects of one task, over its attempts; see `records.Receipts`."""

    def __init__(self, name: str, uncertain: str = "fail") -> None:
        """For the task called `name`."""
        self._name = name
        self._uncertain = uncertain
        self._known: dict[str, Receipt | None] = {}
        self._lock = Lock()

    def begin(self, key: str) -> Receipt | None:
        """Note the intent."""
        with self._lock:
            known = self._known.get(key)
            receipt = decided(key in self._known, known, self._uncertain, task=self._name, key=key)
            self._known[key] = receipt
            return receipt

    def finish(self, key: str, value: str) -> None:
        """Note the receipt."""
        with self._lock:
            self._known[key] = Receipt(value)

    def withdraw(self, key: str) -> None:
        """Forget the intent."""
        with self._lock:
            if self._known.get(key) is None:
                self._known.pop(key, None)

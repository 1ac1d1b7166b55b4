"""Results kept for the tasks that depend on them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ag2_parallel.core.kept import LoadedWhenRead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ag2_parallel.core.kept import Kept
    from ag2_parallel.results import ParallelTaskResult

KEPT_OF_LAZY_SOURCES = 1000
"""How many of the last results are kept where tasks are read lazily and any later one may depend on them."""


class Upstream:
    """Knows the results that are still needed, and the names of settled tasks that are.

    The known dependants of a task keep its result until the last of them is settled. Where tasks come
    one by one any later task may name an earlier one, so the last `KEPT_OF_LAZY_SOURCES` results are
    kept as well.
    """

    def __init__(self, dependants: Mapping[int, int], *, open_ended: bool) -> None:
        """`dependants` is the number of known tasks that depend on each index; `open_ended`: more tasks may come."""
        self._needed = dict(dependants)
        self._results: dict[int, ParallelTaskResult | Kept] = {}
        self._latest: deque[int] | None = deque() if open_ended else None

    def settled(self, result: ParallelTaskResult | Kept) -> None:
        """Keep the result if it may be needed."""
        if self._latest is not None:
            self._latest.append(result.index)
            if len(self._latest) > KEPT_OF_LAZY_SOURCES:
                self._drop(self._latest.popleft())
        elif not self._needed.get(result.index):
            return
        self._results[result.index] = result

    def _drop(self, index: int) -> None:
        if not self._needed.get(index):
            self._results.pop(index, None)

    def hold(self, indexes: Sequence[int], settled: Sequence[int]) -> list[int]:
        """A new task depends on these: keep their results for it. Returns those that are gone already.

        Args:
            indexes: What it depends on.
            settled: Those of them that have their result already.
        """
        if self._latest is None:
            return []  # counted beforehand
        gone = [index for index in settled if index not in self._results]
        if not gone:
            for index in indexes:
                self._needed[index] = self._needed.get(index, 0) + 1
        return gone

    def of(self, indexes: Sequence[int]) -> Mapping[str, ParallelTaskResult]:
        """The results of these tasks by name."""
        found = [self._results[index] for index in indexes if index in self._results]
        return LoadedWhenRead({result.name: result for result in found}) if found else {}

    def name_of(self, index: int) -> str:
        """The name of a settled task."""
        result = self._results.get(index)
        return result.name if result else f"task number {index + 1}"

    def release(self, indexes: Sequence[int]) -> None:
        """One dependant of these tasks is settled."""
        for index in indexes:
            if index in self._needed:
                self._needed[index] -= 1
                if not self._needed[index]:
                    del self._needed[index]
                    if self._latest is None or index not in self._latest:
                        self._results.pop(index, None)

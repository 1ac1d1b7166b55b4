"""Results kept for the tasks that depend on them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ag2_parallel.results import ParallelTaskResult

KEPT_OF_LAZY_SOURCES = 1000
"""How many of the last results are kept where tasks are read lazily and any later one may depend on them."""


class Upstream:
    """Knows the results that are still needed, and the names of settled tasks that are.

    In a list the dependants of every task are known, and a result is dropped when the last of them
    is settled. In a lazy source any later task may name an earlier one, so the last
    `KEPT_OF_LAZY_SOURCES` results are kept.
    """

    def __init__(self, dependants: Mapping[int, int] | None) -> None:
        """`dependants` is the number of tasks that depend on each index; None for a lazy source."""
        self._needed = None if dependants is None else dict(dependants)
        self._results: dict[int, ParallelTaskResult] = {}
        self._order: deque[int] = deque()

    def settled(self, result: ParallelTaskResult) -> None:
        """Keep the result if it may be needed."""
        if self._needed is not None:
            if self._needed.get(result.index):
                self._results[result.index] = result
            return
        self._results[result.index] = result
        self._order.append(result.index)
        if len(self._order) > KEPT_OF_LAZY_SOURCES:
            self._results.pop(self._order.popleft(), None)

    def of(self, indexes: Sequence[int]) -> Mapping[str, ParallelTaskResult]:
        """The results of these tasks by name."""
        found = [self._results[index] for index in indexes if index in self._results]
        return {result.name: result for result in found}

    def name_of(self, index: int) -> str:
        """The name of a settled task."""
        result = self._results.get(index)
        return result.name if result else f"task number {index + 1}"

    def release(self, indexes: Sequence[int]) -> None:
        """One dependant of these tasks is settled."""
        if self._needed is None:
            return
        for index in indexes:
            self._needed[index] -= 1
            if not self._needed[index]:
                self._results.pop(index, None)

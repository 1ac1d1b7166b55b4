"""Results of an earlier life of the run that stand: known by name and status, read when somebody wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ag2_parallel.results import ParallelTaskResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.results import TaskStatus


@dataclass(frozen=True, slots=True)
class Kept:
    """A result that stands.

    Attributes:
        name: The task's name.
        index: Its place in this life's input.
        status: How it ended.
        load: Gives the whole result; may block.
    """

    name: str
    index: int
    status: TaskStatus
    load: Callable[[], ParallelTaskResult]


class LoadedWhenRead(Mapping[str, ParallelTaskResult]):
    """Results by name, some of them still in the journal."""

    def __init__(self, found: Mapping[str, ParallelTaskResult | Kept]) -> None:
        self._found = dict(found)

    def __getitem__(self, name: str) -> ParallelTaskResult:
        """The result of a task; may block."""
        found = self._found[name]
        if isinstance(found, Kept):
            found = self._found[name] = found.load()
        return found

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._found)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._found)

    def __repr__(self) -> str:
        """As a dict's, what is not read yet by its status alone."""
        return repr(self._found)

"""Which tasks of a run are tried first."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.tasks import RefusedTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.core.task_source import TaskSource


class SampledList(list[Any]):
    """Some tasks of a list, which a run checks whole; what finds the list again finds these."""

    found_by: Mapping[str, Any] | None = None


class SampledSource(Iterable[Any]):
    """Some tasks of a source: a bad one becomes a failed result."""

    def __init__(self, tasks: Sequence[Any], found_by: Mapping[str, Any] | None) -> None:
        self._tasks = tasks
        self.total = len(tasks)
        self.found_by = found_by

    def __iter__(self) -> Iterator[Any]:
        """Task by task."""
        return iter(self._tasks)


@dataclass(frozen=True, slots=True)
class Sample:
    """The tasks that are tried first.

    Attributes:
        tasks: They themselves, in input order.
        total: How many tasks the run has.
        depth: Tasks in the longest chain of those that wait for each other.
    """

    tasks: SampledList | SampledSource
    total: int
    depth: int = 1


def sample_of(source: TaskSource, size: int, seed: int = 0) -> Sample:
    """Choose `size` tasks, spread over the input, the same ones for the same seed.

    Of a list, a task is chosen with all it depends on, where that fits; of a source that is read again, from all
    those that depend on nothing. The source is read once, to its end.

    Raises:
        ConfigurationError: The source could not be read again afterwards.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    if source.listed is not None:
        listed = SampledList(source.listed[place].task for place in _spread(source.listed, size, rng))
        listed.found_by = source.found_by
        return Sample(listed, len(source.listed), _depth(source.listed))
    if source.is_async or iter(source.source) is source.source:
        raise ConfigurationError(
            "tasks: a forecast reads them once and the run once more, and an iterator is read once only; pass a list, "
            "or an iterable that can be read again"
        )
    chosen, total = reservoir(source.source, size, rng)
    return Sample(SampledSource(chosen, source.found_by), total)


def reservoir(items: Iterable[Any], size: int, rng: random.Random) -> tuple[list[Any], int]:
    """`size` of the items, each set of them equally likely, in input order; and how many items there were.

    What cannot run and what depends on other tasks counts and is not chosen. (J. S. Vitter, "Random Sampling with a
    Reservoir", algorithm R, 1985.)
    """
    kept: list[tuple[int, Any]] = []
    total = eligible = 0
    for place, item in enumerate(items):
        total += 1
        if isinstance(item, RefusedTask) or _depends(item):
            continue
        eligible += 1
        if len(kept) < size:
            kept.append((place, item))
        elif (at := rng.randrange(eligible)) < size:
            kept[at] = (place, item)
    kept.sort(key=lambda each: each[0])
    return [item for _, item in kept], total


def _depends(item: Any) -> bool:
    return bool(item.get("depends_on") if isinstance(item, Mapping) else getattr(item, "depends_on", ()))


def _spread(tasks: Sequence[NewTask], size: int, rng: random.Random) -> list[int]:
    """One place from each of `size` stretches of equal length, with what it depends on, `size` places in all."""
    chosen: set[int] = set()
    for stretch in range(size):
        start, end = len(tasks) * stretch // size, len(tasks) * (stretch + 1) // size
        for place in rng.sample(range(start, end), end - start):
            wanted = _with_dependencies(tasks, place) - chosen
            if wanted and len(chosen) + len(wanted) <= size:
                chosen |= wanted
                break
    return sorted(chosen)


def _with_dependencies(tasks: Sequence[NewTask], place: int) -> set[int]:
    found: set[int] = set()
    todo = [place]
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += tasks[at].scheduled.depends_on
    return found


def _depth(tasks: Sequence[NewTask]) -> int:
    """Tasks in the longest chain; there are no circles."""
    depths: dict[int, int] = {}
    for start in range(len(tasks)):
        todo = [start]
        while todo:
            at = todo[-1]
            missing = [each for each in tasks[at].scheduled.depends_on if each not in depths]
            if missing:
                todo += missing
            else:
                depths[todo.pop()] = 1 + max((depths[each] for each in tasks[at].scheduled.depends_on), default=0)
    return max(depths.values(), default=0)

"""Dependencies: from names to indexes, refusing names nobody has and tasks that wait for each other."""

from __future__ import annotations

from collections import deque
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from ag2_parallel.errors import DependencyCycleError, UnknownDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMPARISONS: Final = 100_000
"""How many names are compared in search of a near one, in all: finding it is a courtesy and must not take minutes."""

_SHOWN: Final = 10
"""A circle of more tasks than this is shown in part."""


def resolve(names: Sequence[str], depends_on: Sequence[Sequence[str]]) -> list[tuple[int, ...]]:
    """The indexes each task depends on.

    Args:
        names: The tasks' names, all different.
        depends_on: For each task the names of those it depends on; a name given twice counts once.

    Raises:
        UnknownDependencyError: With every name that no task has, and the nearest one there is.
        DependencyCycleError: With the circles that tasks form.
    """
    index_of = {name: index for index, name in enumerate(names)}
    unknown = [
        (names[index], wanted)
        for index, wanteds in enumerate(depends_on)
        for wanted in dict.fromkeys(wanteds)
        if wanted not in index_of
    ]
    if unknown:
        raise UnknownDependencyError(list(_unknown_problems(unknown, names)))
    resolved = [tuple(index_of[wanted] for wanted in dict.fromkeys(wanteds)) for wanteds in depends_on]
    if circles := list(_circles(resolved)):
        raise DependencyCycleError([_circle_problem(circle, names) for circle in circles])
    return resolved


def _unknown_problems(unknown: Sequence[tuple[str, str]], names: Sequence[str]) -> Iterator[str]:
    left = _COMPARISONS
    folded = {name.strip().casefold(): name for name in names}
    for task, wanted in unknown:
        near = folded.get(wanted.strip().casefold())
        if near is None and left >= len(names):
            left -= len(names)
            near = next(iter(get_close_matches(wanted, names, n=1)), None)
        hint = f'did you mean "{near}"?' if near is not None else "add that task or correct the name"
        yield f'task "{task}": depends_on names "{wanted}", which no task has; {hint}'


def _circles(resolved: Sequence[tuple[int, ...]]) -> Iterator[list[int]]:
    """Circles among the tasks, at least one in every group that cannot start; each begins at its first task."""
    stuck = _stuck(resolved)
    walked: set[int] = set()
    for start in stuck:
        path: dict[int, None] = {}
        here = start
        while here not in walked:
            walked.add(here)
            path[here] = None
            here = next(index for index in resolved[here] if index in stuck)
        if here in path:
            circle = list(path)[list(path).index(here) :]
            first = circle.index(min(circle))
            yield circle[first:] + circle[:first]


def _stuck(resolved: Sequence[tuple[int, ...]]) -> dict[int, None]:
    """The tasks that can never start, in order: those in a circle, and those behind one."""
    unmet = [len(dependencies) for dependencies in resolved]
    dependants: dict[int, list[int]] = {}
    for index, dependencies in enumerate(resolved):
        for dependency in dependencies:
            dependants.setdefault(dependency, []).append(index)
    free = deque(index for index, count in enumerate(unmet) if not count)
    while free:
        for dependant in dependants.get(free.popleft(), ()):
            unmet[dependant] -= 1
            if not unmet[dependant]:
                free.append(dependant)
    return {index: None for index, count in enumerate(unmet) if count}


def _circle_problem(circle: Sequence[int], names: Sequence[str]) -> str:
    quoted = [f'"{names[index]}"' for index in circle]
    if len(circle) == 1:
        return f"task {quoted[0]} depends on itself; remove its own name from depends_on"
    if len(quoted) > _SHOWN:
        quoted = [*quoted[: _SHOWN - 1], f"{len(circle) - _SHOWN} more", quoted[-1]]
    shown = " -> ".join([*quoted, quoted[0]])
    return f"tasks wait for each other: {shown} (each depends on the next); remove one of these dependencies"

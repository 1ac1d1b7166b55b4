"""Which task of a run has which object: factories must return fresh ones, tools should not be shared."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import SharedAgentError

if TYPE_CHECKING:
    from collections.abc import Callable


class Claims:
    """The objects that the tasks of one run got or hold. Safe from any thread."""

    def __init__(self) -> None:
        """Nothing is claimed."""
        self._lock = threading.Lock()
        self._owners: dict[int, tuple[Callable[[], Any], int, str]] = {}
        self._holders: dict[int, tuple[Any, set[int]]] = {}
        self._warned: set[int] = set()

    def claim(self, made: object, *, index: int, task: str) -> None:
        """File `made` under the task.

        Raises:
            SharedAgentError: If a factory returned the same object to another task before.
        """
        with self._lock:
            found = self._owners.get(id(made))
            if found is not None and found[0]() is made:
                if found[1] == index:
                    return
                name = getattr(made, "name", None)
                what = f'{type(made).__name__} "{name}"' if isinstance(name, str) else f"a {type(made).__name__}"
                raise SharedAgentError(
                    f'task "{task}": its factory returned {what}, which task "{found[2]}" of this run already has; '
                    "two tasks would mix their histories: return a fresh one from every call"
                )
            self._owners[id(made)] = (_reference(made), index, task)

    def hold(self, thing: object, *, index: int) -> bool:
        """Note that the running task holds `thing`; True the first time that another running task holds it too."""
        with self._lock:
            _, holders = self._holders.setdefault(id(thing), (thing, set()))
            holders.add(index)
            shared = len(holders) > 1 and id(thing) not in self._warned
            if shared:
                self._warned.add(id(thing))
            return shared

    def release(self, index: int) -> None:
        """The task's attempt has ended: it holds nothing any more."""
        with self._lock:
            for key, (_, holders) in list(self._holders.items()):
                holders.discard(index)
                if not holders:
                    del self._holders[key]


def _reference(made: object) -> Callable[[], Any]:
    try:
        return weakref.ref(made)
    except TypeError:  # keep it, so that its id is not given to another object
        return lambda: made

"""The limit that the system sets: each call in flight holds a connection, and a process may open so many files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ag2_parallel.gate.limits import SlotLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.limits import Need

_SHARE: Final = 0.75
"""Of the files that may still be opened, what calls may hold; the rest is for the tasks themselves."""

_FEWEST: Final = 4

_PLENTY: Final = 100_000
"""Files from which on nothing is limited."""


def allowed_files() -> int | None:
    """How many files the process may have open; None where the system does not say."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def open_files() -> int:
    """How many it has open now; 0 where the system does not say."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return sum(1 for _ in Path(folder).iterdir())
    return 0


class DescriptorLimit(SlotLimit):
    """So many calls at once that the process does not run out of files; the limit may be raised meanwhile."""

    __slots__ = ("_allowed", "_others", "_told", "hit")

    def __init__(self, allowed: Callable[[], int | None] = allowed_files, others: int | None = None) -> None:
        """`others` are the files that are open before the first call."""
        super().__init__("the limit of open files (ulimit -n)", 0)
        self.hit = False
        self._allowed = allowed
        self._others = open_files() if others is None else others
        self._told: object = None

    def ready_at(self, need: Need, now: float) -> float:
        if self._busy >= self._slots:
            self._slots = self._room()
            self.hit = self._busy >= self._slots
        return super().ready_at(need, now)

    def warning(self, run: object) -> str | None:
        """What to say to a run that meets it, once for each run."""
        if not self.hit or self._told is run:
            return None
        self._told, self.hit = run, False
        return (
            f"this process may open {self._allowed()} files, so no more than {self._slots} model calls are made at once "
            "and the others wait; raise the limit (ulimit -n) or use fewer workers"
        )

    def _room(self) -> int:
        allowed = self._allowed()
        if allowed is None or allowed >= _PLENTY:
            return _PLENTY
        return max(_FEWEST, int((allowed - self._others) * _SHARE))

"""How long tasks are expected to take, from what a journal remembers of them and of their groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ag2_parallel.core.entries import NewTask


@dataclass(slots=True)
class _Mean:
    seconds: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.seconds += seconds
        self.count += 1

    @property
    def value(self) -> float:
        return self.seconds / self.count if self.count else 0.0


@dataclass(slots=True)
class Durations:
    """Seconds by task, by group, and of all.

    A task that was seen before is expected to take what it took the last time, one of a known group the
    group's mean, any other the mean of all: it is then neither put off to the end nor sent ahead.

    Starting the longest first is Graham's LPT rule: the makespan is at most 4/3 - 1/(3 m) times the best
    for m workers (R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969).
    """

    _by_name: dict[str, float] = field(default_factory=dict)
    _by_group: dict[str, _Mean] = field(default_factory=dict)
    _all: _Mean = field(default_factory=_Mean)

    @classmethod
    def remembered(cls, known: Iterable[tuple[str, str | None, float]]) -> Durations:
        """From names, groups and seconds, the latest last."""
        durations = cls()
        for name, group, seconds in known:
            durations._by_name[name] = seconds
            durations._all.add(seconds)
            if group is not None:
                durations._by_group.setdefault(group, _Mean()).add(seconds)
        return durations

    def expected(self, name: str, group: str | None) -> float:
        """Seconds; 0 where nothing is remembered at all."""
        seconds = self._by_name.get(name)
        if seconds is not None:
            return seconds
        return self._by_group.get(group or "", self._all).value

    def in_order(self, new: NewTask) -> NewTask:
        """The task with what it is expected to take, which gives it its place among equal priorities."""
        expected = self.expected(new.task.name, new.task.group)
        return replace(new, scheduled=replace(new.scheduled, expected=expected))

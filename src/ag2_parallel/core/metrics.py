"""Numbers of a whole run, added up as results come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ag2_parallel.results import TaskStatus
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from ag2_parallel.core.kept import Kept
    from ag2_parallel.results import ParallelTaskResult


@dataclass(slots=True)
class GroupMetrics:
    """The tasks of one group."""

    tasks: int = 0
    succeeded: int = 0
    task_seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def count(self, result: ParallelTaskResult) -> None:
        """Add a result."""
        self.tasks += 1
        self.succeeded += result.ok
        self.task_seconds += result.duration
        self.usage += result.usage

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "tasks": self.tasks,
            "succeeded": self.succeeded,
            "task_seconds": self.task_seconds,
            "usage": self.usage.to_dict(),
        }


@dataclass(slots=True)
class RunMetrics:
    """What `RunResults.metrics` is made from."""

    tasks: int = 0
    succeeded: int = 0
    task_seconds: float = 0.0
    longest: float = 0.0
    waited: float = 0.0
    model_calls: int = 0
    spared: int = 0
    kept: int = 0
    groups: dict[str, GroupMetrics] = field(default_factory=dict)
    waited_by_limit: dict[str, float] = field(default_factory=dict)

    def count(self, result: ParallelTaskResult) -> None:
        """Add a result."""
        self.tasks += 1
        self.succeeded += result.ok
        self.task_seconds += result.duration
        self.longest = max(self.longest, result.duration)
        self.waited += result.waited
        self.model_calls += result.usage.calls + result.usage.unreported_calls
        self.spared += result.status is TaskStatus.SKIPPED and result.stop_reason == "breaker"
        if result.group is not None:
            self.groups.setdefault(result.group, GroupMetrics()).count(result)

    def count_kept(self, kept: Kept) -> None:
        """Add a result of an earlier life: it took no time of this one."""
        self.tasks += 1
        self.succeeded += kept.status is TaskStatus.SUCCEEDED
        self.kept += 1

    def count_wait(self, limit: str, seconds: float) -> None:
        """A model call waited for a limit."""
        self.waited_by_limit[limit] = self.waited_by_limit.get(limit, 0.0) + seconds

    def to_dict(self, *, wall: float, workers: int, peak: int, abandoned: int, lag_max: float) -> dict[str, Any]:
        """The metrics by name; times in seconds."""
        mean = self.task_seconds / wall if wall > 0 else 0.0
        return {
            "wall": wall,
            "task_seconds": self.task_seconds,
            "longest": self.longest,
            "makespan_bound": max(self.longest, self.task_seconds / workers),
            "speedup": mean,
            "success_rate": self.succeeded / self.tasks if self.tasks else None,
            "concurrency": {"mean": mean, "peak": peak},
            "waited": self.waited,
            "waited_by_limit": dict(self.waited_by_limit),
            "abandoned": abandoned,
            "model_calls": self.model_calls,
            "spared": self.spared,
            "engine_lag_max": lag_max,
            "groups": {name: group.to_dict() for name, group in self.groups.items()},
        }

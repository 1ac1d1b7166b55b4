"""Results that a caller has already: their tasks do not run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ag2_parallel.core.kept import Kept
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.results import ParallelTaskResult


@dataclass(frozen=True, slots=True)
class Known:
    """Results by task name. Those of tasks that never started count for nothing."""

    results: Mapping[str, ParallelTaskResult] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the task has a result that stands."""
        result = self.results.get(name)
        return result is not None and result.started_at is not None

    @property
    def usage(self) -> Usage:
        """What they used, all together."""
        return Usage.total(result.usage for name, result in self.results.items() if self.has(name))

    def kept(self, new: NewTask) -> NewTask:
        """The task as one that keeps its result, where it has one."""
        if not self.has(new.task.name) or new.scheduled.problem is not None:
            return new
        index = new.scheduled.index
        result = replace(self.results[new.task.name], index=index)
        kept = Kept(new.task.name, index, result.status, lambda: result)
        return replace(new, kept=kept, scheduled=replace(new.scheduled, kept=result.status))

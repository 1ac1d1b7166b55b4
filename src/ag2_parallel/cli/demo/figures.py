"""How long it took, at once and one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ag2_parallel.cli.demo.teams import ASSESSMENT

if TYPE_CHECKING:
    from ag2_parallel.run_results import RunResults


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Times of a demonstration in seconds.

    Attributes:
        setup: From the start of the run side by side to its first task.
        parallel: From the start of the first task to the end of the last, side by side.
        one_by_one: The same, one after another; None where that was not run.
        task_seconds: The sum of the tasks' times side by side.
        longest_name: The team that took longest, side by side.
        longest: Its time.
        assessment: Time of the final assessment, side by side.
    """

    setup: float
    parallel: float
    one_by_one: float | None
    task_seconds: float
    longest_name: str
    longest: float
    assessment: float

    @property
    def reduction(self) -> float:
        """By how many per cent the tasks are done sooner side by side; estimated from `task_seconds` where not measured."""
        alone = self.task_seconds if self.one_by_one is None else self.one_by_one
        return 100 * (1 - self.parallel / alone) if alone > 0 else 0.0

    @property
    def bound(self) -> float:
        """The longest team and then the assessment: what no number of workers can beat."""
        return self.longest + self.assessment

    @property
    def over_bound(self) -> float:
        """The parallel time as a multiple of `bound`."""
        return self.parallel / self.bound if self.bound > 0 else 1.0


def figures(side_by_side: RunResults, one_by_one: RunResults | None) -> Figures:
    """Work out the figures. `one_by_one` are the results of the same tasks with one worker."""
    teams = [result for result in side_by_side.values() if result.name != ASSESSMENT]
    longest = max(teams, key=lambda result: result.duration)
    parallel = span(side_by_side)
    return Figures(
        setup=max(0.0, side_by_side.metrics.get("wall", parallel) - parallel),
        parallel=parallel,
        one_by_one=span(one_by_one) if one_by_one else None,
        task_seconds=sum(result.duration for result in side_by_side.values()),
        longest_name=longest.name,
        longest=longest.duration,
        assessment=side_by_side[ASSESSMENT].duration,
    )


def span(results: RunResults) -> float:
    """Seconds from the start of the first task to the end of the last; loading AG2 comes before and does not count."""
    ran = [result for result in results.values() if result.started_at is not None]
    if not ran:
        return 0.0
    first = min(result.started_at for result in ran)
    last: float = (max(result.finished_at for result in ran) - first).total_seconds()
    return last

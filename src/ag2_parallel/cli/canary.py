"""`--canary`: a sample runs, its forecast is told, and the rest waits for a yes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.found_tasks import FoundSource
from ag2_parallel.cli.frame import say
from ag2_parallel.forecast import dollars
from ag2_parallel.reporting.words import many_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ag2_parallel.cli.run_settings import RunSettings
    from ag2_parallel.forecast import Forecast
    from ag2_parallel.runner import ParallelAgentRunner

READ_AHEAD: Final = 1000
"""Rows of a pipe that the sample is taken from."""


@dataclass(frozen=True, slots=True)
class Canary:
    """What the sample said.

    Attributes:
        forecast: Of the whole run.
        tasks: All tasks, to be read once more.
    """

    forecast: Forecast
    tasks: Iterable[Any]


def canary(runner: ParallelAgentRunner, tasks: Iterable[Any], settings: RunSettings, run_id: str) -> Canary:
    """Run the sample and tell the forecast.

    Raises:
        ConfigurationError: If nothing can be run; nothing was started.
        RunFailedError: If the sample failed as a whole.
        RunInterrupted: After Ctrl-C or SIGTERM.
    """
    assert settings.canary is not None
    whole = True
    read: Iterable[Any] = tasks
    if not getattr(tasks, "repeatable", True):
        pipe = iter(tasks)
        ahead = list(islice(pipe, READ_AHEAD + 1))
        whole = len(ahead) <= READ_AHEAD
        found_by = getattr(tasks, "found_by", None)
        read, tasks = FoundSource(ahead[:READ_AHEAD], found_by), FoundSource(chain(ahead, pipe), found_by)
    forecast = replace(runner.forecast(read, settings.canary, run_id=run_id), whole=whole)
    say(str(forecast))
    for result in forecast.results.values():
        if not result.ok:
            say(f"{result.name} {result.status}: {result.error}")
    return Canary(forecast, tasks)


def refusal(forecast: Forecast, settings: RunSettings) -> str | None:
    """Why the rest is not run, or None: asked where somebody can answer."""
    if settings.yes or (forecast.whole and not forecast.left):
        return None
    if sys.stdin.isatty() and sys.stderr.isatty():
        return None if _yes(forecast, settings.max_cost) else "stopped after the sample"
    return _unattended(forecast, settings.max_cost)


def _unattended(forecast: Forecast, max_cost: float | None) -> str | None:
    """Why a run does not go on that nobody watches."""
    how = "; to go on all the same, give --yes"
    if forecast.failed == forecast.sampled:
        return f"stopped after the sample, since all of it failed{how}"
    if max_cost is None:
        return f"stopped after the sample, since nobody can be asked here{how}, or --max-cost with what it may cost"
    if not forecast.whole:
        return f"stopped after the sample, since it is not known how many tasks there are{how}"
    if forecast.cost is None:
        return f"stopped after the sample, since its cost is not known{how}"
    if forecast.cost.high >= max_cost:
        most = dollars(forecast.cost.high)
        return f"stopped after the sample, since the run may cost {most} and --max-cost is {dollars(max_cost)}{how}, or a higher --max-cost"
    return None


def _yes(forecast: Forecast, max_cost: float | None) -> bool:
    limit = "" if max_cost is None else f", {dollars(max_cost)} at most"
    left = f"{many_tasks(forecast.left)} that are left" if forecast.whole else "tasks that are left"
    sys.stderr.write(f"ag2-parallel: run the {left}{limit}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}

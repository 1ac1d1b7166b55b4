"""Many tasks of one agent each, all processor time: the runner on threads beside the runner in two processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison import Comparison, Load, Requirement
from single_agents import task_dicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel import ProcessBackend


def threads(load: Load) -> Callable[[int], int]:
    """Threads of one process."""
    return _runner(load, "local")


def processes(load: Load) -> Callable[[int], int]:
    """Two worker processes, kept from run to run as in a `with` block."""
    from ag2_parallel import ProcessBackend

    return _runner(load, ProcessBackend(workers=2))


def _runner(load: Load, backend: str | ProcessBackend) -> Callable[[int], int]:
    from ag2_parallel import ParallelAgentRunner

    runner = ParallelAgentRunner(load.workers, backend=backend, progress=False)
    runner.__enter__()  # until this process ends

    def run(tasks: int) -> int:
        return len(runner.run(list(task_dicts(tasks, load.base_url, lambda _number: "You answer."))).succeeded)

    return run


COMPARISON = Comparison(
    title="threads of one process beside two worker processes, single agents, no latency",
    sides={"threads": threads, "two processes": processes},
    load=Load(tasks=1000, workers=16, latency=0.0, warm_up=60),
    quick=Load(tasks=20, workers=4, latency=0.0),
    columns=("wall", "rss"),
    requirements=(Requirement("two processes", "wall", 1 / 1.5, "threads"),),
    shown_ratios=(),
)

"""Teams of four agents, all processor time: the runner on threads beside the runner in two processes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import group_chats
import hand_written
from comparison import Comparison, Load, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel import ProcessBackend, TaskContext


def threads(load: Load) -> Callable[[int], int]:
    """Threads of one process."""
    return _runner(load, "local")


def processes(load: Load) -> Callable[[int], int]:
    """Two worker processes, kept from run to run as in a `with` block."""
    from ag2_parallel import ProcessBackend

    return _runner(load, ProcessBackend(workers=2))


def team(base_url: str, ctx: TaskContext) -> Any:
    """The factory of every task: a live team could not be sent to another process."""
    return group_chats.group_chat(ctx.llm_config(hand_written.llm_config(base_url)))


def _runner(load: Load, backend: str | ProcessBackend) -> Callable[[int], int]:
    from ag2_parallel import ParallelAgentRunner, ParallelTask

    runner = ParallelAgentRunner(load.workers, backend=backend, progress=False)
    runner.__enter__()  # until this process ends
    made = partial(team, load.base_url)

    def run(tasks: int) -> int:
        wanted = [ParallelTask(f"team-{number}", hand_written.prompt(number), agent=made) for number in range(tasks)]
        return len(runner.run(wanted).succeeded)

    return run


COMPARISON = Comparison(
    title="threads of one process beside two worker processes, teams of four agents in turn, no latency",
    sides={"threads": threads, "two processes": processes},
    load=Load(tasks=400, workers=16, latency=0.0, warm_up=60),
    quick=Load(tasks=8, workers=4, latency=0.0),
    columns=("wall", "rss"),
    requirements=(Requirement("two processes", "wall", 1 / 1.5, "threads"),),
    shown_ratios=(),
)

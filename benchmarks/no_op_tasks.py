"""What the runner itself costs: tasks that do nothing, beside the same function given to a thread pool."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from comparison import Comparison, Load, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable


def no_op(_ctx: Any) -> int:
    """Do nothing; a value says that it ran."""
    return 1


def thread_pool(load: Load) -> Callable[[int], int]:
    """`ThreadPoolExecutor.submit`: no names, deadlines, retries, order or results of a run."""

    def run(tasks: int) -> int:
        with ThreadPoolExecutor(max_workers=load.workers) as pool:
            futures = [pool.submit(no_op, None) for _ in range(tasks)]
            return sum(future.result() for future in futures)

    return run


def runner(load: Load) -> Callable[[int], int]:
    """`run=` tasks; making and checking them is inside the clock."""
    from ag2_parallel import ParallelAgentRunner, ParallelTask

    def run(tasks: int) -> int:
        made = ParallelAgentRunner(max_workers=load.workers, progress=False)
        return len(made.run([ParallelTask(f"task-{number}", run=no_op) for number in range(tasks)]).succeeded)

    return run


COMPARISON = Comparison(
    title="a thread pool beside the runner, tasks that do nothing",
    sides={"thread pool": thread_pool, "runner": runner},
    load=Load(tasks=20_000, workers=8),
    quick=Load(tasks=200, workers=8),
    requirements=(Requirement("runner", "cpu_per_task", 250e-6),),
)

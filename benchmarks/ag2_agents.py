"""Many tasks of one AG2 1.x agent each: `asyncio.gather` over fresh agents beside the runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hand_written
import hand_written_ag2
from comparison import Comparison, Load, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable


def by_hand(load: Load) -> Callable[[int], int]:
    """Fresh agents with the default configuration: AG2 makes a client for each `ask`."""
    import ag2.config  # noqa: F401 - imports count on no side

    def make(number: int) -> object:
        return hand_written_ag2.agent(load.base_url, number)

    return lambda tasks: hand_written_ag2.gathered(load.workers, make, tasks)


def shared_client(load: Load) -> Callable[[int], int]:
    """Fresh agents that share one HTTP client by hand."""
    import ag2.config  # noqa: F401 - imports count on no side

    def run(tasks: int) -> int:
        client = hand_written_ag2.shared_client()

        def make(number: int) -> object:
            return hand_written_ag2.agent(load.base_url, number, http_client=client)

        return hand_written_ag2.gathered(load.workers, make, tasks)

    return run


def runner(load: Load) -> Callable[[int], int]:
    """The same agents, made by a factory in each task."""
    import ag2.config  # noqa: F401 - imports count on no side

    from ag2_parallel import ParallelAgentRunner, ParallelTask

    def task(number: int) -> ParallelTask:
        prompt = hand_written.prompt(number)
        return ParallelTask(f"task-{number}", prompt, agent=lambda: hand_written_ag2.agent(load.base_url, number))

    def run(tasks: int) -> int:
        made = ParallelAgentRunner(max_workers=load.workers, progress=False)
        return len(made.run([task(number) for number in range(tasks)]).succeeded)

    return run


COMPARISON = Comparison(
    title="asyncio.gather over fresh AG2 1.x agents beside the runner",
    sides={"by hand": by_hand, "shared client": shared_client, "runner": runner},
    load=Load(tasks=200, workers=20, latency=0.0),
    quick=Load(tasks=10, workers=5, latency=0.0),
    columns=("wall", "cpu", "cpu_per_task", "rss", "calls_per_task"),
    requirements=(
        Requirement("runner", "cpu", 0.15, "by hand"),
        Requirement("runner", "cpu", 0.80, "shared client"),
    ),
    shown_ratios=(("runner", "wall", "by hand"), ("runner", "wall", "shared client")),
)

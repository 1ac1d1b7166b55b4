"""Many tasks of one agent each: a thread pool with fresh agents beside the runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hand_written
from comparison import Comparison, Load, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def by_hand(load: Load) -> Callable[[int], int]:
    """Fresh agents with clients of their own, as AG2 makes them from a configuration."""
    task = hand_written.single_agent(lambda: hand_written.llm_config(load.base_url))
    return lambda tasks: hand_written.in_pool(load.workers, task, tasks)


def runner(load: Load) -> Callable[[int], int]:
    """The same tasks as configuration dicts."""
    return _runner(load, lambda _number: hand_written.SYSTEM_MESSAGE)


def runner_all_different(load: Load) -> Callable[[int], int]:
    """Each task's configuration differs, so that an agent has to be built for each."""
    return _runner(load, lambda number: f"{hand_written.SYSTEM_MESSAGE} You are on ward {number}.")


def _runner(load: Load, system_message: Callable[[int], str]) -> Callable[[int], int]:
    import autogen  # noqa: F401 - imports count on no side

    from ag2_parallel import ParallelAgentRunner

    def run(tasks: int) -> int:
        made = ParallelAgentRunner(max_workers=load.workers, progress=False)
        return len(made.run(list(task_dicts(tasks, load.base_url, system_message))).succeeded)

    return run


def task_dicts(tasks: int, base_url: str, system_message: Callable[[int], str]) -> Iterable[dict[str, Any]]:
    """One dict for each task, nothing in it shared with another."""
    for number in range(tasks):
        agent = {
            "type": "AssistantAgent",
            "name": f"assistant_{number}",
            "system_message": system_message(number),
            "llm_config": hand_written.llm_config(base_url),
        }
        yield {
            "name": f"task-{number}",
            "prompt": hand_written.prompt(number),
            "agent_config": agent,
            "max_turns": 1,
        }


COMPARISON = Comparison(
    title="a thread pool with fresh agents beside the runner, single agents",
    sides={"by hand": by_hand, "runner": runner, "runner, all different": runner_all_different},
    load=Load(tasks=200, workers=200, latency=1.0),
    quick=Load(tasks=10, workers=10, latency=0.1),
    columns=("wall", "cpu", "cpu_per_task", "rss", "calls_per_task"),
    requirements=(
        Requirement("runner", "wall", 0.40, "by hand"),
        Requirement("runner", "cpu", 0.06, "by hand"),
    ),
    shown_ratios=(
        ("runner, all different", "wall", "by hand"),
        ("runner, all different", "cpu", "by hand"),
    ),
)

"""A thousand tasks at once: thread pools with fresh agents, with clients of their own or one shared, beside the runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hand_written
import single_agents
from comparison import Comparison, Load, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable


def shared_client(load: Load) -> Callable[[int], int]:
    """Fresh agents that share one HTTP client by hand."""
    client = hand_written.shared_client()
    task = hand_written.single_agent(lambda: hand_written.llm_config(load.base_url, http_client=client))
    return lambda tasks: hand_written.in_pool(load.workers, task, tasks)


COMPARISON = Comparison(
    title="thread pools with fresh agents beside the runner, single agents",
    sides={"by hand": single_agents.by_hand, "shared client": shared_client, "runner": single_agents.runner},
    load=Load(tasks=1000, workers=1000, latency=1.0),
    quick=Load(tasks=20, workers=20, latency=0.1),
    columns=("wall", "cpu", "cpu_per_task", "rss", "rss_before", "calls_per_task"),
    requirements=(
        Requirement("runner", "wall", 0.15, "by hand"),
        Requirement("runner", "wall", 0.50, "shared client"),
        Requirement("runner", "rss", 250),
    ),
    shown_ratios=(("runner", "cpu", "by hand"), ("runner", "cpu", "shared client")),
)

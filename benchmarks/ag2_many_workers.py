"""A thousand AG2 1.x agents at once: `asyncio.gather` over fresh agents beside the runner."""

from __future__ import annotations

import ag2_agents
from comparison import Comparison, Load, Requirement

COMPARISON = Comparison(
    title="asyncio.gather over a thousand fresh AG2 1.x agents beside the runner",
    sides={"by hand": ag2_agents.by_hand, "shared client": ag2_agents.shared_client, "runner": ag2_agents.runner},
    load=Load(tasks=1000, workers=1000, latency=1.0),
    quick=Load(tasks=20, workers=20, latency=0.1),
    columns=("wall", "cpu", "cpu_per_task", "rss", "rss_before", "calls_per_task"),
    requirements=(
        Requirement("runner", "wall", 0.25, "by hand"),
        Requirement("runner", "rss", 0.30, "by hand"),
    ),
    shown_ratios=(
        ("runner", "cpu", "by hand"),
        ("runner", "wall", "shared client"),
        ("runner", "rss", "shared client"),
    ),
)

"""Group chats of four agents: fresh teams in a thread pool beside one live team given to the runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hand_written
from comparison import Comparison, Load, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
"""As AG2 counts them: the prompt and four answers."""

SPEAKERS = {
    "coordinator": "You coordinate the team and name what is open.",
    "specialist": "You give a specialist's view of the case.",
    "reviewer": "You review what was said for clinical safety.",
    "supervisor": "You sum up and decide.",
}


def by_hand(load: Load) -> Callable[[int], int]:
    """Fresh teams whose agents have clients of their own."""
    return _in_pool(load, lambda: hand_written.llm_config(load.base_url))


def shared_client(load: Load) -> Callable[[int], int]:
    """Fresh teams whose agents share one HTTP client by hand."""
    client = hand_written.shared_client()
    return _in_pool(load, lambda: hand_written.llm_config(load.base_url, http_client=client))


def runner(load: Load) -> Callable[[int], int]:
    """One live `GroupChat` as the template of every task."""
    from ag2_parallel import ParallelAgentRunner, ParallelTask

    team = group_chat(hand_written.llm_config(load.base_url))

    def run(tasks: int) -> int:
        made = ParallelAgentRunner(max_workers=load.workers, progress=False)
        wanted = [ParallelTask(f"team-{number}", hand_written.prompt(number), agent=team) for number in range(tasks)]
        return len(made.run(wanted).succeeded)

    return run


def group_chat(config: dict[str, Any]) -> Any:
    """Four agents who speak in turn."""
    from autogen import AssistantAgent, GroupChat

    agents = [AssistantAgent(name, system_message=text, llm_config=config) for name, text in SPEAKERS.items()]
    return GroupChat(agents=agents, messages=[], max_round=ROUNDS, speaker_selection_method="round_robin")


def _in_pool(load: Load, config: Callable[[], dict[str, Any]]) -> Callable[[int], int]:
    from autogen import GroupChatManager, UserProxyAgent

    def task(number: int) -> str:
        own = config()
        manager = GroupChatManager(groupchat=group_chat(own), llm_config=own)
        user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
        return str(user.initiate_chat(manager, message=hand_written.prompt(number), silent=True).summary)

    return lambda tasks: hand_written.in_pool(load.workers, task, tasks)


COMPARISON = Comparison(
    title="fresh teams in a thread pool beside one live team given to the runner, four agents in turn, five rounds",
    sides={"by hand": by_hand, "shared client": shared_client, "runner": runner},
    load=Load(tasks=50, workers=50, latency=1.0),
    quick=Load(tasks=5, workers=5, latency=0.1),
    columns=("wall", "cpu", "cpu_per_task", "rss", "calls_per_task"),
    requirements=(
        Requirement("runner", "cpu", 0.30, "by hand"),
        Requirement("runner", "cpu", 1.15, "shared client"),
    ),
    shown_ratios=(("runner", "wall", "by hand"), ("runner", "wall", "shared client")),
)

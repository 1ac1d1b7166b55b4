"""A team of AG2 1.x agents on a hub, as a value: who is in it, and who speaks after whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

DEFAULT_TTL: Final = 3600


@dataclass(frozen=True, slots=True, eq=False)
class WorkflowTeam:
    """Agents of AG2 1.x that talk on a workflow channel of a hub of their own.

    As a task's `agent`, given as it is or returned by a factory, it is run by the runner: the prompt is sent on
    the channel, the transcript is the whole team's, what an agent raises fails the task, and the hub is closed
    whatever happens. `run_workflow` does the same in code of your own.

    Attributes:
        agents: The members, in the order in which they take part; two or more `ag2.Agent`s, or one.
        graph: A function from the ids of the user and of the members to an `ag2.network.TransitionGraph`, called as
            `graph(user_id, [member_id, ...])`. None: each member speaks once, in order.
        user: The name under which the prompt is sent.
        ttl: Seconds after which the hub gives the channel up; the task's own limits come first.
    """

    agents: Sequence[Any]
    graph: Callable[[str, list[str]], Any] | None = None
    user: str = "user"
    ttl: int = DEFAULT_TTL

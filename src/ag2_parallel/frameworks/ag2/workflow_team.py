"""A team of AG2 1.x agents on a hub, as a value: who is in it, and who speaks after whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEFAULT_TTL: Final = 86_400


@dataclass(frozen=True, eq=False)
class WorkflowTeam:
    """Agents of AG2 1.x that talk on a workflow channel of a hub of their own.

    As a task's `agent`, given as it is or returned by a factory, it is run by the runner: the prompt is sent on
    the channel, the transcript is the whole team's, what an agent raises fails the task, and the hub is closed
    whatever happens. `run_workflow` does the same in code of your own.

    Attributes:
        agents: The members, in the order in which they take part: `ag2.Agent` objects, one at least.
        graph: A function from the ids of the user and of the members to an `ag2.network.TransitionGraph`, called as
            `graph(user_id, [member_id, ...])`; the user speaks first. None: each member speaks once, in order.
        user: The name under which the prompt is sent.
        network_tools: Whether members get AG2's tools for finding peers and opening channels.
        ttl: Seconds after which the hub gives the channel up; limits of a task come first.
    """

    agents: Sequence[Any]
    graph: Callable[[str, list[str]], Any] | None = None
    user: str = "user"
    network_tools: bool = False
    ttl: int = DEFAULT_TTL


@dataclass(frozen=True, slots=True)
class WorkflowOutcome:
    """What a workflow channel came to.

    Attributes:
        answer: The last thing that a member said.
        messages: The transcript: `role`, `name` and `content` of each message.
        close_reason: AG2's word on why the channel was closed, such as "sequence_complete" or "max_turns".
        finished: Whether a member's tool ended it with `Finish`.
        context: The channel's context variables at the end.
    """

    answer: str
    messages: list[dict[str, Any]]
    close_reason: str
    finished: bool = False
    context: Mapping[str, Any] = field(default_factory=dict)

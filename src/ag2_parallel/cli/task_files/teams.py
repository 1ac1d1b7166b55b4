"""Teams of a task file: factories of AG2 agents, each attempt's own."""

from __future__ import annotations

import copy
import importlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.tasks import TaskContext


@dataclass(frozen=True, slots=True)
class TeamFactory:
    """Builds a team; a task's `agent`.

    Attributes:
        pattern: One of the words of `models.Team.pattern`.
        members: The agents' configurations by their keys, in order.
        user: The key of the one that says the prompt.
        max_rounds: Rounds of a group; None: AG2's default.
        selection: The model configuration that chooses speakers; None: a member's.
    """

    pattern: str
    members: Mapping[str, Mapping[str, Any]] = field(repr=False)
    user: str | None = None
    max_rounds: int | None = None
    selection: Any = field(default=None, repr=False)

    def __call__(self, ctx: TaskContext) -> Any:
        """Build it for one attempt."""
        agents = {key: member(ctx, config) for key, config in self.members.items()}
        if self.pattern == "two_agent":
            return tuple(agents.values())
        if self.pattern == "sequence":
            return _sequence(list(agents.values()), agents.get(self.user or ""))
        return self._group(ctx, agents)

    def _group(self, ctx: TaskContext, agents: dict[str, Any]) -> Any:
        from autogen import GroupChat, GroupChatManager

        config = ctx.llm_config(self.selection) if self.selection else None
        rounds = {} if self.max_rounds is None else {"max_round": self.max_rounds}
        chat = GroupChat(
            agents=list(agents.values()),
            messages=[],
            speaker_selection_method=self.pattern,
            select_speaker_auto_llm_config=config,
            **rounds,
        )
        if self.user is None:
            return chat
        return agents[self.user], GroupChatManager(groupchat=chat, llm_config=config or False)


def member(ctx: TaskContext, config: Mapping[str, Any]) -> Any:
    """An agent of a team, whose model calls go through the runner's gate from the start."""
    arguments = copy.copy(dict(config))
    kind, functions = arguments.pop("type", "ConversableAgent"), arguments.pop("functions", ())
    module, _, name = kind.rpartition(":")
    cls = getattr(importlib.import_module(module or "autogen"), name)
    if arguments.get("llm_config"):
        arguments["llm_config"] = ctx.llm_config(arguments["llm_config"])
    if (variables := arguments.get("context_variables")) is not None:
        from autogen.agentchat.group import ContextVariables

        arguments["context_variables"] = ContextVariables(data=copy.deepcopy(variables))
    agent = cls(**arguments)
    for function in functions:
        described = (function.__doc__ or "").strip() or function.__name__
        agent.register_for_llm(name=function.__name__, description=described, silent_override=True)(function)
    return agent


def _sequence(agents: list[Any], user: Any) -> Any:
    """Each agent speaks once, its tools apart, and hands over to the next."""
    from autogen.agentchat.group import AgentTarget, TerminateTarget
    from autogen.agentchat.group.patterns import DefaultPattern

    speakers = [agent for agent in agents if agent is not user]
    for agent, following in itertools.pairwise(speakers):
        agent.handoffs.set_after_work(AgentTarget(following))
    speakers[-1].handoffs.set_after_work(TerminateTarget())
    return DefaultPattern(initial_agent=speakers[0], agents=speakers, user_agent=user)

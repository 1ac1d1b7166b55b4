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
        selection: The model configuration that chooses speakers; None: a member's.
    """

    pattern: str
    members: Mapping[str, Mapping[str, Any]] = field(repr=False)
    user: str | None = None
    selection: Any = field(default=None, repr=False)

    def __call__(self, ctx: TaskContext) -> Any:
        """Build it for one attempt."""
        agents = {key: member(ctx, config) for key, config in self.members.items()}
        user = agents.get(self.user or "")
        speakers = [agent for agent in agents.values() if agent is not user]
        if self.pattern == "two_agent":
            return _pair(*speakers)
        if self.pattern == "sequence":
            return _sequence(speakers, user)
        from autogen.agentchat.group import patterns

        if self.pattern == "round_robin":
            return patterns.RoundRobinPattern(initial_agent=speakers[0], agents=speakers, user_agent=user)
        chooser = {"llm_config": ctx.llm_config(self.selection)} if self.selection else {}
        return patterns.AutoPattern(
            initial_agent=speakers[0], agents=speakers, user_agent=user, group_manager_args=chooser
        )


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


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    """Each can execute the tools that the other calls."""
    for caller, executor in ((first, second), (second, first)):
        for tool in caller.tools:
            executor.register_for_execution(name=tool.name, silent_override=True)(tool.func)
    return first, second


def _sequence(speakers: list[Any], user: Any) -> Any:
    """Each agent speaks once, its tools apart, and hands over to the next."""
    from autogen.agentchat.group import AgentTarget, TerminateTarget
    from autogen.agentchat.group.patterns import DefaultPattern

    for agent, following in itertools.pairwise(speakers):
        agent.handoffs.set_after_work(AgentTarget(following))
    speakers[-1].handoffs.set_after_work(TerminateTarget())
    return DefaultPattern(initial_agent=speakers[0], agents=speakers, user_agent=user)

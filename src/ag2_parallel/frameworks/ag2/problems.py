"""What can be seen to be wrong with a task of AG2 1.x before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks import output_types
from ag2_parallel.frameworks.ag2.build import config_problems
from ag2_parallel.frameworks.ag2.kinds import is_agent, is_team

if TYPE_CHECKING:
    from ag2_parallel.tasks import ParallelTask

_SUMMARIES = ("last_msg", "reflection_with_llm")


def task_problems(task: ParallelTask, agent: Any) -> list[str]:
    """Problems of the fields that say how a conversation is run and read."""
    where = f'task "{task.name}"'
    found = []
    method = task.summary_method
    if not (method is None or callable(method) or method in _SUMMARIES):
        found.append(
            f"{where}: summary_method {method!r} is neither {' nor '.join(map(repr, _SUMMARIES))} nor a function"
        )
    if task.output_type is not None:
        if (problem := output_types.type_problem(task.output_type)) is not None:
            found.append(f"{where}: output_type {problem}")
        if method is None:
            found.append(f"{where}: output_type needs an answer to validate, and summary_method=None makes none")
    if is_team(agent):
        found += [f"{where}: {text}" for text in _team_problems(agent)]
        if method not in {"last_msg", None}:
            found.append(f'{where}: summary_method {method!r} is not there for a WorkflowTeam; use "last_msg"')
    return found


def config_task_problems(task: ParallelTask, default: Any) -> list[str]:
    """Problems of a task whose agent is built: from its `agent_config`, or from the runner's model alone."""
    config = task.agent_config
    if config is None:
        return []
    return [f'task "{task.name}": {text}' for text in config_problems(config, default)]


def spec_problems(task: ParallelTask, spec: Any, default: Any) -> list[str]:
    """Problems of an `AgentSpec`, which has neither a model nor the code of its tools."""
    where = f'task "{task.name}": its AgentSpec'
    found = []
    if default is None:
        found.append(f"{where} names no model; give the runner an llm_config of AG2 1.x, or pass a factory")
    if spec.tool_names:
        tools = ", ".join(spec.tool_names)
        found.append(
            f"{where} names tools whose code it does not bring ({tools}); pass a factory that calls to_agent, or an "
            'agent_config with "type": "ag2.Agent" and "tools"'
        )
    return found


def agent_problems(task: ParallelTask, agents: Sequence[Any], default: Any) -> list[str]:
    """Problems of live agents, their copying left aside."""
    return [
        f'task "{task.name}": agent "{agent.name}" has no model: set its config, or give the runner an llm_config of '
        "AG2 1.x"
        for agent in agents
        if agent.config is None and default is None
    ]


def _team_problems(team: Any) -> list[str]:
    if not isinstance(team.agents, list | tuple) or not team.agents or not all(map(is_agent, team.agents)):
        return ["a WorkflowTeam needs a list of ag2.Agent objects, one at least"]
    names = [agent.name for agent in team.agents]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        return [f"a team's agents need names of their own; doubled: {', '.join(doubled)}"]
    if team.user in names:
        return [f'the team\'s user and an agent are both called "{team.user}"; set WorkflowTeam.user to another name']
    if team.graph is not None and not callable(team.graph):
        return [
            "WorkflowTeam.graph is a function of the ids of the user and the members that returns a TransitionGraph"
            + (": a graph of its own cannot know them" if not isinstance(team.graph, Mapping) else "")
        ]
    return []

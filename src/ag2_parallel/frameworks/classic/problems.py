"""What can be seen to be wrong with a Classic task before anything starts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks import output_types
from ag2_parallel.frameworks.classic import teams
from ag2_parallel.frameworks.classic.build import TYPES, config_problems, llm_config_problem, of_the_other_line
from ag2_parallel.frameworks.classic.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.tasks import ParallelTask

_SUMMARIES = ("last_msg", "reflection_with_llm")


def task_problems(task: ParallelTask) -> list[str]:
    """Problems of the fields that say how a chat is run and read."""
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
    return found


def config_task_problems(task: ParallelTask, llm_config: Any, foreign: Any = None) -> list[str]:
    """Problems of a task whose agent is built: from its `agent_config`, or from the runner's model alone.

    Args:
        task: The task.
        llm_config: The runner's.
        foreign: The runner's, where it is of AG2 1.x and `llm_config` is None for that.
    """
    config = task.agent_config
    if config is not None:
        found = config_problems(task.name, config)
        if not found and _is_mute(config, llm_config):
            if foreign is not None:
                return [
                    f'task "{task.name}": agent_config has no llm_config, and that of the runner {of_the_other_line(foreign)}'
                ]
            found.append(
                f'task "{task.name}": agent_config has no llm_config and neither has the runner, so the agent could '
                "answer nothing; set one, or default_auto_reply"
            )
        return found
    if not llm_config:
        return [f'task "{task.name}" has no agent_config, agent or run; give one of them, or the runner an llm_config']
    problem = llm_config_problem(llm_config)
    return [f"llm_config of the runner {problem}"] if problem else []


def _is_mute(config: Mapping[str, Any], llm_config: Any) -> bool:
    own = config.get("llm_config")
    speaks = (
        own or (own is None and llm_config) or config.get("default_auto_reply") or config.get("code_execution_config")
    )
    return not speaks and config.get("type", TYPES[0]) in TYPES and config.get("human_input_mode", "NEVER") == "NEVER"


def team_problems(task: ParallelTask, agent: Any, kind: Kind, llm_config: Any) -> list[str]:
    """Problems of a live agent or team, its copying left aside."""
    where = f'task "{task.name}"'
    found = []
    if kind.is_team and task.max_turns is not None and task.max_turns < 2:
        found.append(
            f"{where}: max_turns={task.max_turns} ends a team before anybody has spoken, since AG2 counts the prompt "
            "as a round; use 2 or more"
        )
    if kind is Kind.PAIR and agent[0] is agent[1]:
        found.append(f"{where}: initiator and recipient are the same agent; give two")
    if kind is Kind.AGENTS:
        doubled = [name for name, count in Counter(each.name for each in agent).items() if count > 1]
        if len(agent) < 2:
            found.append(f"{where}: a group needs two agents; to run one, give the agent itself, not a list")
        if doubled:
            found.append(f"{where}: a group's agents need names of their own; doubled: {', '.join(doubled)}")
    if (problem := _selection_problem(agent, kind, llm_config)) is not None:
        found.append(f"{where}: {problem}")
    return found


def _selection_problem(agent: Any, kind: Kind, llm_config: Any) -> str | None:
    """Why nobody can choose the next speaker."""
    if kind is Kind.PATTERN:
        if not teams.asks_manager(agent) or teams.pattern_config(agent, llm_config):
            return None
        return (
            "the pattern's manager selects speakers with a model, and neither it nor an agent has one; set "
            'group_manager_args={"llm_config": ...} or the runner\'s llm_config'
        )
    if kind is Kind.MANAGER:
        group, chosen = agent.groupchat, teams.manager_config(agent, llm_config)
    elif kind is Kind.GROUP_CHAT:
        group, chosen = agent, teams.selection_config(agent, llm_config)
    else:
        return None
    if chosen or not teams.selects_by_model(group):
        return None
    return (
        'the group chat selects speakers with a model (speaker_selection_method="auto") and none of '
        "its agents has one; set select_speaker_auto_llm_config, the runner's llm_config, or another method"
    )

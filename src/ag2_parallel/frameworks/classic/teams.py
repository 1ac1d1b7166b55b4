"""Chats of whole teams: a GroupChat, its manager, a list of agents, a Pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks.classic.chat import Chat
from ag2_parallel.frameworks.classic.kinds import is_group_chat, is_manager, is_pattern
from ag2_parallel.frameworks.classic.model_configs import without_tools
from ag2_parallel.frameworks.classic.one_shot_user import one_shot_user
from ag2_parallel.frameworks.classic.stop_reasons import says_terminate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_ROUNDS = 20
"""Rounds of a Pattern's chat where the task sets none, as `initiate_group_chat` has it."""

_UNATTENDED_USER = "_User"
"""Name of the user that AG2 adds to a Pattern that has none."""


def round_robin(agents: Sequence[Any]) -> Any:
    """A group chat in which the agents speak in turn."""
    from autogen import GroupChat

    return GroupChat(agents=list(agents), messages=[], speaker_selection_method="round_robin")


def managed_chat(group_chat: Any, max_turns: int | None, *, llm_config: Any, reflects: bool) -> Chat:
    """A chat of a one-shot user with a `GroupChat`, under a manager made for it.

    Args:
        group_chat: Of this attempt.
        max_turns: Rounds, the prompt's included, as AG2 counts them; None: the group chat's own.
        llm_config: What to select speakers with where the group chat and its agents have nothing.
        reflects: Whether the summary is made by a model, so that the manager needs one.
    """
    from autogen import GroupChatManager

    chosen = selection_config(group_chat, llm_config) if reflects or selects_by_model(group_chat) else None
    manager = GroupChatManager(
        groupchat=group_chat,
        llm_config=without_tools(chosen) if chosen else False,
        is_termination_msg=says_terminate,
    )
    return manager_chat(manager, max_turns)


def manager_chat(manager: Any, max_turns: int | None) -> Chat:
    """A chat of a one-shot user with the manager of a group."""
    for group_chat in run_copies(manager):
        if max_turns is not None:
            group_chat.max_round = max_turns
    members = list(manager.groupchat.agents)
    user = one_shot_user([agent.name for agent in members])
    return Chat(user, manager, [user, manager, *members], user=user)


def pattern_chat(pattern: Any, last_message: Any, max_turns: int | None) -> Chat:
    """A chat of a Pattern: what `initiate_group_chat` does, up to the point where the chat begins.

    The user that AG2 adds to a Pattern without one only starts the chat: it asks a person when it
    is chosen to speak, and nobody is there.

    Args:
        pattern: Of this attempt; AG2 changes it and its agents here.
        last_message: The prompt that will be sent, which says who sends it.
        max_turns: Rounds; None: AG2's default.
    """
    messages = [last_message] if isinstance(last_message, dict) else last_message
    parts = pattern.prepare_group_chat(max_rounds=max_turns or DEFAULT_ROUNDS, messages=messages)
    manager = next(part for part in parts if is_manager(part))
    group_chat = manager.groupchat
    starter = next((agent for agent in group_chat.agents if agent.name == _UNATTENDED_USER), None)
    if starter is not None and starter is not pattern.user_agent:
        starter.human_input_mode = "NEVER"
        _leave(group_chat, starter)
    else:
        starter = _named(group_chat, messages) or pattern.user_agent
    return Chat(starter, manager, [manager, starter, *group_chat.agents], summary_method=pattern.summary_method)


def run_copies(manager: Any) -> list[Any]:
    """The manager's group chat and the shallow copies of it that the manager's reply functions run on."""
    copies = [entry["config"] for entry in manager._reply_func_list if is_group_chat(entry["config"])]  # noqa: SLF001
    return [manager.groupchat, *copies]


def selects_by_model(group_chat: Any) -> bool:
    """Whether a model chooses who speaks next."""
    method = group_chat.speaker_selection_method
    return isinstance(method, str) and method.lower() == "auto"


def selection_config(group_chat: Any, llm_config: Any) -> Any:
    """The model configuration a group's manager gets: the group's own, else a member's, else the runner's."""
    return group_chat.select_speaker_auto_llm_config or _first_model(group_chat.agents) or llm_config


def manager_config(manager: Any, llm_config: Any) -> Any:
    """What a manager's group selects speakers with: as `selection_config`, the manager's own before a member's."""
    own = manager.groupchat.select_speaker_auto_llm_config or manager.llm_config
    return own or selection_config(manager.groupchat, llm_config)


def pattern_config(pattern: Any, llm_config: Any) -> Any:
    """What the manager of a Pattern selects speakers with: its own arguments', else a member's, else the runner's."""
    return pattern.group_manager_args.get("llm_config") or _first_model(pattern.agents) or llm_config


def asks_manager(pattern: Any) -> bool:
    """Whether a Pattern, or a handoff of its agents, lets the manager's model choose who speaks."""
    from autogen.agentchat.group.targets.group_manager_target import GroupManagerTarget

    return isinstance(pattern.group_after_work, GroupManagerTarget) or any(
        agent.handoffs.get_context_conditions_by_target_type(GroupManagerTarget)
        or agent.handoffs.get_llm_conditions_by_target_type(GroupManagerTarget)
        or any(isinstance(each.target, GroupManagerTarget) for each in agent.handoffs.after_works)
        for agent in pattern.agents
    )


def give_selection_models(root: Any, agents: Sequence[Any], llm_config: Any) -> None:
    """Give what selects speakers a model where it has none; before it is governed.

    AG2 looks for one at the manager alone.

    Args:
        root: The team, of this attempt.
        agents: All its agents, managers among them, of this attempt too.
        llm_config: Where neither the team nor its agents have one.
    """
    for manager in filter(is_manager, agents):
        chosen = None if manager.llm_config else manager_config(manager, llm_config)
        for group_chat in run_copies(manager):
            if chosen and selects_by_model(group_chat) and not group_chat.select_speaker_auto_llm_config:
                group_chat.select_speaker_auto_llm_config = without_tools(chosen)
    if is_pattern(root) and not root.group_manager_args.get("llm_config") and asks_manager(root):
        chosen = pattern_config(root, llm_config)
        if chosen:
            root.group_manager_args = {**root.group_manager_args, "llm_config": without_tools(chosen)}


def _first_model(agents: Sequence[Any]) -> Any:
    return next((agent.llm_config for agent in agents if getattr(agent, "llm_config", None)), None)


def share_context(agents: Sequence[Any], values: dict[str, Any]) -> Any:
    """Give the agents of this attempt one set of context variables with `values` in it."""
    from autogen.agentchat.group import ContextVariables

    merged: dict[str, Any] = {}
    for agent in agents:
        merged |= agent.context_variables.to_dict()
    shared = ContextVariables(data=merged | values)
    for agent in agents:
        agent.context_variables = shared
    return shared


def final_context(agents: Sequence[Any]) -> dict[str, Any]:
    """The agents' context variables as plain data, those of later agents over those of earlier ones."""
    seen: dict[int, Callable[[], dict[str, Any]]] = {
        id(a.context_variables): a.context_variables.to_dict for a in agents
    }
    return {name: value for plain in seen.values() for name, value in plain().items()}


def _leave(group_chat: Any, agent: Any) -> None:
    """Take an agent out of a group chat and its shallow copies, which share these containers."""
    group_chat.agents[:] = [each for each in group_chat.agents if each is not agent]
    transitions = group_chat.allowed_speaker_transitions_dict
    transitions.pop(agent, None)
    for allowed in transitions.values():
        allowed[:] = [each for each in allowed if each is not agent]


def _named(group_chat: Any, messages: Any) -> Any:
    name = messages[0].get("name") if isinstance(messages, list) else None
    return group_chat.agent_by_name(name) if name else None

"""Every agent and group chat that belongs to a team, wherever AG2 keeps it.

Nested chats hide in closures of reply functions, handoff targets in pydantic models, inner agents
in attributes of special agents.
"""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass, field
from typing import Any, Final

from ag2_parallel.frameworks.classic.kinds import is_agent, is_group_chat

_LEAVES: Final = (str, bytes, int, float, bool, type, types.ModuleType, types.NoneType)

_NOT_LOOKED_INTO: Final = frozenset({
    "llm_config", "client", "context_variables", "_oai_messages", "_oai_system_message", "_human_input",
    "_consecutive_auto_reply_counter", "_max_consecutive_auto_reply_dict", "reply_at_receive", "messages",
    "_code_execution_config", "_code_executor", "_run_async_in_thread",
})  # fmt: skip
"""Attributes that hold no further members, or only those that are found elsewhere."""

_OPAQUE: Final = frozenset({"OpenAIWrapper", "LLMConfig", "ContextVariables"})


@dataclass(slots=True)
class Members:
    """What was found, each thing once, in the order it was found."""

    agents: list[Any] = field(default_factory=list)
    group_chats: list[Any] = field(default_factory=list)


def members_of(*roots: Any) -> Members:
    """Walk from the roots through attributes, containers, closures and bound methods."""
    found = Members()
    seen: set[int] = set()
    alive: list[Any] = []  # ids in `seen` stay theirs
    stack = list(reversed(roots))
    while stack:
        thing = stack.pop()
        if isinstance(thing, _LEAVES) or id(thing) in seen:
            continue
        seen.add(id(thing))
        alive.append(thing)
        if is_agent(thing):
            found.agents.append(thing)
        elif is_group_chat(thing):
            found.group_chats.append(thing)
        stack.extend(_parts(thing))
    return found


def _parts(thing: Any) -> list[Any]:
    parts: list[Any] = []
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    elif isinstance(thing, types.FunctionType):
        parts = [*_cells(thing), getattr(thing, "__wrapped__", None)]
    elif isinstance(thing, types.MethodType):
        parts = [thing.__func__, *_of_owner(thing.__self__)]
    elif isinstance(thing, functools.partial):
        parts = [thing.func, *thing.args, *thing.keywords.values()]
    elif type(thing).__name__ not in _OPAQUE and (_is_ag2(thing) or is_agent(thing) or is_group_chat(thing)):
        held = getattr(thing, "__dict__", {})
        parts = [value for name, value in held.items() if name not in _NOT_LOOKED_INTO]
    return parts


def _of_owner(owner: Any) -> list[Any]:
    """The object a method is bound to; of one that is not AG2's only the agents it holds directly."""
    if _is_ag2(owner) or is_agent(owner):
        return [owner]
    held = getattr(owner, "__dict__", {})
    return [value for value in held.values() if is_agent(value) or is_group_chat(value)]


def _is_ag2(thing: Any) -> bool:
    return type(thing).__module__.startswith("autogen.")


def _cells(function: types.FunctionType) -> list[Any]:
    contents = []
    for cell in function.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return contents

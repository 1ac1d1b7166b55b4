"""What kind of AG2 Classic team an object is, told without importing AG2.

An object can only be an AG2 agent if its module was imported before, so looking among the loaded
modules is enough.
"""

from __future__ import annotations

import sys
from enum import Enum

_AGENT = ("autogen.agentchat.conversable_agent", "ConversableAgent")
_MANAGER = ("autogen.agentchat.groupchat", "GroupChatManager")
_GROUP_CHAT = ("autogen.agentchat.groupchat", "GroupChat")
_PATTERN = ("autogen.agentchat.group.patterns.pattern", "Pattern")


class Kind(Enum):
    """The forms a Classic task may have."""

    AGENT = "an agent"
    PAIR = "an (initiator, recipient) pair"
    AGENTS = "a list of agents"
    GROUP_CHAT = "a GroupChat"
    MANAGER = "a GroupChatManager"
    PATTERN = "a Pattern"

    @property
    def is_team(self) -> bool:
        """Whether its turns are rounds of a group."""
        return self not in {Kind.AGENT, Kind.PAIR}


def kind_of(thing: object) -> Kind | None:
    """The kind of `thing`, or None where it is nothing of AG2 Classic's."""
    if isinstance(thing, tuple):
        return Kind.PAIR if len(thing) == 2 and all(map(is_agent, thing)) else None
    if isinstance(thing, list):
        return Kind.AGENTS if thing and all(map(is_agent, thing)) else None
    for kind, place in (
        (Kind.MANAGER, _MANAGER),
        (Kind.AGENT, _AGENT),
        (Kind.GROUP_CHAT, _GROUP_CHAT),
        (Kind.PATTERN, _PATTERN),
    ):
        if _is(thing, place):
            return kind
    return None


def is_agent(thing: object) -> bool:
    """Whether it is an agent, a group's manager included."""
    return _is(thing, _AGENT)


def is_agent_class(thing: type) -> bool:
    """Whether it is a class of agents, not an agent."""
    module, name = _AGENT
    cls = getattr(sys.modules.get(module), name, None)
    return isinstance(cls, type) and issubclass(thing, cls)


def is_manager(thing: object) -> bool:
    """Whether it is the manager of a group chat."""
    return _is(thing, _MANAGER)


def is_group_chat(thing: object) -> bool:
    """Whether it is a `GroupChat`."""
    return _is(thing, _GROUP_CHAT)


def is_pattern(thing: object) -> bool:
    """Whether it is a Pattern."""
    return _is(thing, _PATTERN)


def _is(thing: object, place: tuple[str, str]) -> bool:
    module, name = place
    cls = getattr(sys.modules.get(module), name, None)
    return isinstance(cls, type) and isinstance(thing, cls)

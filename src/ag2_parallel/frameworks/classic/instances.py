"""What is put in place on an attempt's own agents, and taken away at its end.

AG2 asks before each reply function whether the sender is an `Agent`, a runtime Protocol with a dozen
members: the interpreter looks all of them up each time, and the answer is always the same. It is found here at a tenth
of the cost.

An agent of AG2 holds itself, by a method bound to it. Agents that wait for the garbage collector because of that, some hundred
objects each, make it walk through the whole program again and again. So a copy that has served lets go of itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any


def match_quickly(agent: Any) -> None:
    """Let an agent of this attempt know other AG2 agents for agents by their class. Only the instance is changed."""
    from autogen import ConversableAgent

    own_way = type(agent)._match_trigger is not ConversableAgent._match_trigger  # noqa: SLF001 - a subclass may have one
    if not own_way and "_match_trigger" not in vars(agent):
        agent._match_trigger = _matches  # noqa: SLF001


def _matches(trigger: Any, sender: Any) -> bool:
    from autogen import Agent, ConversableAgent

    if trigger is Agent and isinstance(sender, ConversableAgent):
        return True
    if isinstance(trigger, list):
        return any(_matches(each, sender) for each in trigger)
    # Of the agent itself AG2 asks nothing but the same again, for a list.
    matches: bool = ConversableAgent._match_trigger(None, trigger, sender)  # noqa: SLF001
    return matches


def let_go(agent: Any, *, copied: bool) -> None:
    """An attempt is over: its agent matches in AG2's own way again and, where it is a copy of ours, holds itself no more."""
    if vars(agent).get("_match_trigger") is _matches:
        del agent._match_trigger  # noqa: SLF001
    limits = agent._max_consecutive_auto_reply_dict  # noqa: SLF001
    if copied and getattr(limits, "default_factory", None) == agent.max_consecutive_auto_reply:
        limits.default_factory = partial(int, agent.max_consecutive_auto_reply())

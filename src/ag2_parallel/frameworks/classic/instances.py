"""What is put in place on an attempt's own agents, class by class the same and only on the instance.

AG2 asks before each reply function whether the sender is an `Agent`, a runtime Protocol with a dozen
members: the interpreter looks all of them up each time, and the answer is always the same. It is found here at a tenth
of the cost.

An agent of AG2 holds itself, by a method bound to it. Here it does not: it is freed as soon as its task is over. Agents that
wait for the garbage collector, some hundred objects each, make it walk through the whole program again and again.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any


def tune(agent: Any) -> None:
    """Let an agent of this attempt match senders quickly and hold no reference to itself."""
    from autogen import ConversableAgent

    itself = weakref.ref(agent)
    if type(agent)._match_trigger is ConversableAgent._match_trigger:  # noqa: SLF001 - a subclass may have its own way
        agent._match_trigger = partial(_matches, itself)  # noqa: SLF001
    limits = agent._max_consecutive_auto_reply_dict  # noqa: SLF001
    if getattr(limits.default_factory, "__self__", None) is agent:
        limits.default_factory = partial(_default_limit, itself)


def _matches(itself: weakref.ref[Any], trigger: Any, sender: Any) -> bool:
    from autogen import Agent, ConversableAgent

    if trigger is Agent and isinstance(sender, ConversableAgent):
        return True
    if isinstance(trigger, list):
        return any(_matches(itself, each, sender) for each in trigger)
    matches: bool = ConversableAgent._match_trigger(itself(), trigger, sender)  # noqa: SLF001
    return matches


def _default_limit(itself: weakref.ref[Any]) -> int:
    limit: int = itself().max_consecutive_auto_reply()  # type: ignore[union-attr]  # the dict is the agent's own
    return limit

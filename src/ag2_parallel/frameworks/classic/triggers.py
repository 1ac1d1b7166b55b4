"""Who an agent's reply functions answer, found out at a tenth of AG2's cost.

AG2 asks before each reply function whether the sender is an `Agent`, a runtime Protocol with a dozen
members: the interpreter looks all of them up each time, and the answer is always the same.
"""

from __future__ import annotations

from typing import Any


def match_quickly(agent: Any) -> None:
    """Let an agent of this attempt know other AG2 agents for agents by their class. Only the instance is changed."""
    from autogen import Agent, ConversableAgent

    if type(agent)._match_trigger is not ConversableAgent._match_trigger:  # noqa: SLF001 - a subclass has its own way
        return

    def match(trigger: Any, sender: Any) -> bool:
        if trigger is Agent and isinstance(sender, ConversableAgent):
            return True
        if isinstance(trigger, list):
            return any(match(each, sender) for each in trigger)
        matches: bool = ConversableAgent._match_trigger(agent, trigger, sender)  # noqa: SLF001
        return matches

    agent._match_trigger = match  # noqa: SLF001

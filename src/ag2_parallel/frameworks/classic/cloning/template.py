"""The face of cloning: a template that is surveyed once, and its copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autogen import ConversableAgent, GroupChat, LLMConfig

from ag2_parallel.errors import UnsupportedAgentError
from ag2_parallel.frameworks.classic.cloning.team import RULES
from ag2_parallel.frameworks.cloning.compiling import Compiler
from ag2_parallel.frameworks.cloning.refusals import refusal
from ag2_parallel.frameworks.cloning.survey import Survey


@dataclass(frozen=True, slots=True)
class Clone:
    """One independent copy of a team.

    Attributes:
        root: The copy of what the template was made of, of the same type.
        agents: Every agent of the copy, recipients of nested chats and managers included.
        group_chats: Every group chat of the copy, among them the shallow copies that managers really run.
        llm_configs: Every `LLMConfig` of the copy. Configurations given as dicts stay dicts and are not among them.
        template: What it is a copy of.
    """

    root: Any
    agents: list[ConversableAgent]
    group_chats: list[GroupChat]
    llm_configs: list[LLMConfig]
    template: Template


class Template:
    """A team surveyed once, to be copied any number of times, from any thread.

    The copy is of the team as it was when surveyed. Surveying and copying change nothing of it. A copy knows nothing
    of earlier conversations: messages (also those that a `GroupChat` or an agent was constructed with), counters,
    usage and caches start empty.

    Attributes:
        refusals: Why the team cannot be copied, a sentence each; empty if it can.
    """

    def __init__(self, root: Any) -> None:
        """Survey a team.

        Args:
            root: A `ConversableAgent`, `GroupChat`, `GroupChatManager` or `Pattern`, or a list or tuple of agents,
                which are then copied as one team.
        """
        survey = Survey(root, RULES)
        compiler = Compiler([] if survey.refusals else survey.copied())
        self.refusals = survey.refusals + [
            refusal(node, "needs itself to be made", RULES) for node in compiler.circles[:1]
        ]
        copied = [(node.obj, compiler.slot(node)) for node in survey.copied() if not self.refusals]
        self._plan = compiler.plan
        self._root = next((slot for obj, slot in copied if obj is root), None)
        self._shared_root = root
        self._agents = [slot for obj, slot in copied if isinstance(obj, ConversableAgent)]
        self._group_chats = [slot for obj, slot in copied if isinstance(obj, GroupChat)]
        self._llm_configs = [slot for obj, slot in copied if isinstance(obj, LLMConfig)]

    def clone(self) -> Clone:
        """Copy the team, independently of the original and of other copies.

        Raises:
            UnsupportedAgentError: The team cannot be copied; the message is `refusals`.
        """
        if self.refusals:
            raise UnsupportedAgentError(self.refusals)
        new = self._plan.run()
        return Clone(
            root=self._shared_root if self._root is None else new[self._root],
            agents=[new[slot] for slot in self._agents],
            group_chats=[new[slot] for slot in self._group_chats],
            llm_configs=[new[slot] for slot in self._llm_configs],
            template=self,
        )

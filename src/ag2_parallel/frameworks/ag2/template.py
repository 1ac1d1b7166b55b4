"""A template of AG2 1.x that is surveyed once, and its copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ag2.agent import Agent

from ag2_parallel.errors import UnsupportedAgentError
from ag2_parallel.frameworks.ag2.team import RULES
from ag2_parallel.frameworks.cloning.compiling import Compiler
from ag2_parallel.frameworks.cloning.refusals import refusal
from ag2_parallel.frameworks.cloning.survey import Survey


@dataclass(frozen=True, slots=True)
class Clone:
    """One independent copy.

    Attributes:
        root: The copy of what the template was made of.
        agents: Every agent of the copy, those behind tools included.
    """

    root: Any
    agents: list[Any]


class Template:
    """An agent or a team surveyed once, to be copied any number of times, from any thread.

    Attributes:
        refusals: Why it cannot be copied, a sentence each; empty if it can.
    """

    def __init__(self, root: Any) -> None:
        """Survey an `ag2.Agent` or a `WorkflowTeam`; nothing of it is changed."""
        survey = Survey(root, RULES)
        compiler = Compiler([] if survey.refusals else survey.copied())
        self.refusals = survey.refusals + [
            refusal(node, "needs itself to be made", RULES) for node in compiler.circles[:1]
        ]
        copied = [(node.obj, compiler.slot(node)) for node in survey.copied() if not self.refusals]
        self._plan = compiler.plan
        self._root = next((slot for obj, slot in copied if obj is root), 0)
        self._agents = [slot for obj, slot in copied if isinstance(obj, Agent)]

    def clone(self) -> Clone:
        """A copy, independent of the original and of other copies.

        Raises:
            UnsupportedAgentError: It cannot be copied; the message is `refusals`.
        """
        if self.refusals:
            raise UnsupportedAgentError(self.refusals)
        new = self._plan.run()
        return Clone(root=new[self._root], agents=[new[slot] for slot in self._agents])

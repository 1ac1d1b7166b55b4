"""The demonstration's agents in the two lines of AG2; factories make them fresh for every attempt."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final, Protocol

from ag2_parallel.errors import ConfigurationError, MissingExtraError
from ag2_parallel.teams import WorkflowTeam

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ag2_parallel.cli.demo.models import DemoModel
    from ag2_parallel.tasks import TaskContext

    Factory = Callable[[TaskContext], Any]

FRAMEWORKS: Final = {"classic": "autogen", "ag2": "ag2"}
"""What `--framework` may be, and the package that it needs."""


class Agents(Protocol):
    """Makes the agents of one line."""

    def of_team(self, members: Mapping[str, str]) -> Factory:
        """A factory of a team whose members, given by name and instructions, speak once each, in order."""

    def of_one(self, name: str, instructions: str) -> Factory:
        """A factory of one agent."""


class ClassicAgents:
    """AG2 Classic: a group chat."""

    def __init__(self, model: DemoModel) -> None:
        """All agents ask `model`."""
        self._llm_config = model.llm_config

    def of_team(self, members: Mapping[str, str]) -> Factory:
        """See `Agents`."""

        def make(ctx: TaskContext) -> Any:
            from autogen import GroupChat, GroupChatManager

            agents = [self._agent(ctx, name, instructions) for name, instructions in members.items()]
            rounds = 1 + len(agents)  # the question is a round, too
            chat = GroupChat(agents=agents, messages=[], max_round=rounds, speaker_selection_method="round_robin")
            return GroupChatManager(groupchat=chat, name="manager", llm_config=False)

        return make

    def of_one(self, name: str, instructions: str) -> Factory:
        """See `Agents`."""
        return lambda ctx: self._agent(ctx, name, instructions)

    def _agent(self, ctx: TaskContext, name: str, instructions: str) -> Any:
        from autogen import ConversableAgent

        config = ctx.llm_config(self._llm_config)
        return ConversableAgent(name, system_message=instructions, llm_config=config, human_input_mode="NEVER")


class Ag2Agents:
    """AG2 1.x: a workflow channel of a hub."""

    def __init__(self, model: DemoModel) -> None:
        """All agents ask `model`."""
        (entry,) = model.llm_config["config_list"]
        self._settings = {name: value for name, value in entry.items() if name != "price"}

    def of_team(self, members: Mapping[str, str]) -> Factory:
        """See `Agents`."""
        return lambda ctx: WorkflowTeam(
            [self._agent(ctx, name, instructions) for name, instructions in members.items()]
        )

    def of_one(self, name: str, instructions: str) -> Factory:
        """See `Agents`."""
        return lambda ctx: self._agent(ctx, name, instructions)

    def _agent(self, ctx: TaskContext, name: str, instructions: str) -> Any:
        from ag2 import Agent
        from ag2.config import OpenAIConfig

        return Agent(name, instructions, config=ctx.llm_config(OpenAIConfig(**self._settings)))


def agents_of(framework: str, model: DemoModel) -> Agents:
    """The agents of a line, which is imported: the runner then warms it up before the first task."""
    importlib.import_module(FRAMEWORKS[framework])
    return ClassicAgents(model) if framework == "classic" else Ag2Agents(model)


def chosen(framework: str | None) -> str:
    """The line to use: the one asked for, or else Classic where it is installed, and AG2 1.x where it is not.

    Raises:
        ConfigurationError: If there is no line of that name.
        MissingExtraError: If its package is not installed.
    """
    installed = [name for name, package in FRAMEWORKS.items() if importlib.util.find_spec(package) is not None]
    if framework is None:
        framework = next(iter(installed), "classic")
    if framework not in FRAMEWORKS:
        raise ConfigurationError(f"--framework: {framework} is none of {', '.join(FRAMEWORKS)}")
    if framework not in installed:
        raise MissingExtraError(f'--framework {framework} needs: pip install "ag2-parallel[{framework}]"')
    return framework

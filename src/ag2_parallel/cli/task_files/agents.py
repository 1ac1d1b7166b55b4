"""The agents and teams that task files name, as what tasks have in their places."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.task_files.models import Ag2Agent
from ag2_parallel.cli.task_files.teams import TeamFactory
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.frameworks.ag2.kinds import CONFIG_TYPE
from ag2_parallel.workers.locating import locate

if TYPE_CHECKING:
    from ag2_parallel.cli.task_files.document import Document, Inside
    from ag2_parallel.cli.task_files.models import Agent, Team
    from ag2_parallel.cli.task_files.reading import ReadFile

_OF_AG2: Final = ("ConversableAgent", "AssistantAgent", "UserProxyAgent")

_AG2_FIELDS: Final = ("prompt", "config", "description")
"""Of an agent of AG2 1.x, what goes into its description as it is."""


def located(path: str, document: Document, inside: Inside) -> Any:
    """The object that `module:attribute` names, or an error that says where it is named."""
    try:
        return locate(path)
    except ConfigurationError as error:
        raise document.error(str(error), inside) from None
    except Exception as error:  # the module is the user's, and raises what it likes
        raise document.error(f'"{path}" cannot be imported: {type(error).__name__}: {error}', inside) from error


def _located_for_option(path: str) -> None:
    try:
        locate(path)
    except Exception as error:  # the module is the user's, and raises what it likes
        told = str(error) if isinstance(error, ConfigurationError) else f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"--agent {path}: {told}") from error


class Agents:
    """Agents and teams of all files together, by their keys."""

    def __init__(self, files: list[ReadFile], llm_config: Any) -> None:
        """Build what agents are made of.

        Args:
            files: The files; their keys must differ.
            llm_config: For agents that have none.

        Raises:
            ConfigurationError: With every problem and its place.
        """
        self._llm_config = llm_config
        self._configs: dict[str, dict[str, Any]] = {}
        self._behind: dict[str, tuple[Ag2Agent, Document]] = {}
        self._teams: dict[str, tuple[TeamFactory, int | None]] = {}
        self._homes: dict[str, str] = {}
        problems: list[str] = []
        for file in files:
            for key, model in file.content.agents.items():
                if isinstance(model, Ag2Agent) and file.document is not None:
                    self._behind.setdefault(key, (model, file.document))
        for kind in ("agents", "teams"):
            for file in files:
                for key, model in getattr(file.content, kind).items():
                    assert file.document is not None
                    try:
                        self._take(kind, key, model, file.document)
                    except ConfigurationError as error:
                        problems += error.problems
        if problems:
            raise ConfigurationError(problems)

    def _take(self, kind: str, key: str, model: Any, document: Document) -> None:
        inside = (kind, key)
        here = document.where(inside)
        if key in self._homes:
            raise document.error(f"the name is taken, at {self._homes[key]}", inside)
        self._homes[key] = here
        if isinstance(model, Ag2Agent):
            self._configs[key] = self._ag2_config(key, model, document)
        elif kind == "agents":
            self._configs[key] = _config(key, model, document)
        else:
            self._teams[key] = (self._team(model, document, inside), model.max_rounds)

    def _ag2_config(self, key: str, agent: Ag2Agent, document: Document, above: tuple[str, ...] = ()) -> dict[str, Any]:
        """An `agent_config` of an agent of AG2 1.x, with those behind it."""
        inside = ("agents", key)
        config = {
            "type": CONFIG_TYPE,
            **agent.model_dump(exclude_unset=True, include=set(_AG2_FIELDS)),
            **agent.arguments,
        }
        config["name"] = agent.name or _name(key)
        if agent.tools:
            config["tools"] = [_function(path, document, (*inside, "tools", at)) for at, path in enumerate(agent.tools)]
        if agent.response_schema is not None:
            config["response_schema"] = located(agent.response_schema, document, (*inside, "response_schema"))
        behind = []
        for at, other in enumerate(agent.agents):
            here = (*inside, "agents", at)
            if other not in self._behind:
                raise document.error(f"{self._no_such(other, list(self._behind))}, of AG2 1.x", here)
            if other in {key, *above}:
                raise document.error(f"the agent {other!r} is its own tool; leave it out", here)
            behind.append(self._ag2_config(other, *self._behind[other], (key, *above)))
        return {**config, "agents": behind} if behind else config

    def _team(self, team: Team, document: Document, inside: Inside) -> TeamFactory:
        if team.user is not None and team.pattern == "two_agent":
            raise document.error("a two_agent team has no user: its first agent says the prompt", (*inside, "user"))
        if team.pattern == "two_agent" and len(team.agents) != 2:
            raise document.error(f"a two_agent team has two agents, not {len(team.agents)}", (*inside, "agents"))
        keys = list(team.agents)
        for at, key in enumerate(keys):
            if key not in self._configs:
                raise document.error(self._no_such(key, list(self._configs)), (*inside, "agents", at))
            if key in self._behind:
                raise document.error(self._not_for_teams(key), (*inside, "agents", at))
            if keys.index(key) < at:
                raise document.error(
                    f"the agent {key!r} is there twice; a team's agents must differ", (*inside, "agents", at)
                )
        if team.user is not None and team.user not in keys:
            if team.user not in self._configs:
                raise document.error(self._no_such(team.user, list(self._configs)), (*inside, "user"))
            if team.user in self._behind:
                raise document.error(self._not_for_teams(team.user), (*inside, "user"))
            keys.insert(0, team.user)
        return TeamFactory(
            team.pattern,
            {key: self._member(key) for key in keys},
            team.user,
            team.llm_config or (self._selection(keys) if team.pattern == "auto" else None),
        )

    def _member(self, key: str) -> dict[str, Any]:
        """An agent's configuration with its model, which in a team nobody else gives it."""
        config = self._configs[key]
        silent = config["type"] == "UserProxyAgent"
        return {"llm_config": False if silent else self._llm_config or False, **config}

    def _selection(self, keys: list[str]) -> Any:
        """What chooses speakers: the first member's model."""
        found = (self._member(key)["llm_config"] for key in keys)
        return next((config for config in found if config), self._llm_config)

    def fields(self, name: str, document: Document, inside: Inside) -> dict[str, Any]:
        """The fields of a task whose `agent` is called `name`."""
        if name in self._configs:
            return {"agent_config": self._configs[name]}
        if name in self._teams:
            team, rounds = self._teams[name]
            return {"agent": team} if rounds is None else {"agent": team, "max_turns": rounds}
        if ":" in name:
            located(name, document, inside)
            return {"agent": name}
        raise document.error(self._no_such(name, [*self._configs, *self._teams]), inside)

    def chosen(self, name: str | None) -> dict[str, Any]:
        """`agent` for a task: `name`, else the only team, else the only agent, else none: a plain assistant.

        Raises:
            ConfigurationError: If none is named and there are several, or there is none of that name.
        """
        if name is not None:
            if ":" in name:
                _located_for_option(name)
            elif name not in self._homes:
                raise ConfigurationError(f"--agent: {self._no_such(name, list(self._homes))}")
            return {"agent": name}
        for known in (self._teams, self._configs):
            if len(known) == 1:
                return {"agent": next(iter(known))}
            if known:
                raise ConfigurationError(f"choose one of the agents with --agent: {', '.join(known)}")
        return {}

    @staticmethod
    def _not_for_teams(key: str) -> str:
        return (
            f"the agent {key!r} is of AG2 1.x, and teams of task files are of Classic's; give one agent the others as "
            "`agents`, or name a function that returns a WorkflowTeam as module:attribute"
        )

    @staticmethod
    def _no_such(name: str, known: list[str]) -> str:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}" if known else "there are none"
        return f"no agent is called {name!r}; {hint}"


def _config(key: str, agent: Agent, document: Document) -> dict[str, Any]:
    """Keyword arguments of the agent's class, with functions in the places of their paths."""
    inside = ("agents", key)
    given = agent.model_dump(exclude_unset=True, exclude={"framework", "tools", "arguments", "is_termination_msg"})
    config = {"type": agent.type, "human_input_mode": "NEVER", **given, **agent.arguments}
    config["name"] = agent.name or _name(key)
    if agent.type in _OF_AG2 and agent.code_execution_config is None:
        config["code_execution_config"] = False
    if agent.tools:
        config["functions"] = [_function(path, document, (*inside, "tools", at)) for at, path in enumerate(agent.tools)]
    if agent.is_termination_msg is not None:
        config["is_termination_msg"] = _function(agent.is_termination_msg, document, (*inside, "is_termination_msg"))
    return config


def _name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", key)[:64]


def _function(path: str, document: Document, inside: Inside) -> Any:
    found = located(path, document, inside)
    if not callable(found):
        raise document.error(f'"{path}" is a {type(found).__name__} and no function', inside)
    return found

"""The agents and teams that task files name, as what tasks have in their places."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.task_files.teams import TeamFactory
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.workers.locating import locate

if TYPE_CHECKING:
    from ag2_parallel.cli.task_files.document import Document, Inside
    from ag2_parallel.cli.task_files.models import Agent, Team
    from ag2_parallel.cli.task_files.reading import ReadFile

_OF_AG2: Final = ("ConversableAgent", "AssistantAgent", "UserProxyAgent")


def located(path: str, document: Document, inside: Inside) -> Any:
    """The object that `module:attribute` names, or an error that says where it is named."""
    try:
        return locate(path)
    except ConfigurationError as error:
        raise document.error(str(error), inside) from None
    except Exception as error:  # the module is the user's, and raises what it likes
        raise document.error(f'"{path}" cannot be imported: {type(error).__name__}: {error}', inside) from error


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
        self._teams: dict[str, tuple[TeamFactory, int | None]] = {}
        self._homes: dict[str, str] = {}
        problems: list[str] = []
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
        if kind == "agents":
            self._configs[key] = _config(key, model, document)
        else:
            self._teams[key] = (self._team(model, document, inside), model.max_rounds)

    def _team(self, team: Team, document: Document, inside: Inside) -> TeamFactory:
        if team.user is not None and team.pattern == "two_agent":
            raise document.error("a two_agent team has no user: its first agent says the prompt", (*inside, "user"))
        if team.pattern == "two_agent" and len(team.agents) != 2:
            raise document.error(f"a two_agent team has two agents, not {len(team.agents)}", (*inside, "agents"))
        keys = list(team.agents)
        for at, key in enumerate(keys):
            if key not in self._configs:
                raise document.error(self._no_such(key, list(self._configs)), (*inside, "agents", at))
            if keys.index(key) < at:
                raise document.error(
                    f"the agent {key!r} is there twice; a team's agents must differ", (*inside, "agents", at)
                )
        if team.user is not None and team.user not in keys:
            if team.user not in self._configs:
                raise document.error(self._no_such(team.user, list(self._configs)), (*inside, "user"))
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
            ConfigurationError: If none is named and there are several.
        """
        if name is not None:
            return {"agent": name}
        for known in (self._teams, self._configs):
            if len(known) == 1:
                return {"agent": next(iter(known))}
            if known:
                raise ConfigurationError(f"choose one of the agents with --agent: {', '.join(known)}")
        return {}

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
    config["name"] = agent.name or re.sub(r"[^A-Za-z0-9_-]", "_", key)[:64]
    if agent.type in _OF_AG2 and agent.code_execution_config is None:
        config["code_execution_config"] = False
    if agent.tools:
        config["functions"] = [_function(path, document, (*inside, "tools", at)) for at, path in enumerate(agent.tools)]
    if agent.is_termination_msg is not None:
        config["is_termination_msg"] = _function(agent.is_termination_msg, document, (*inside, "is_termination_msg"))
    return config


def _function(path: str, document: Document, inside: Inside) -> Any:
    found = located(path, document, inside)
    if not callable(found):
        raise document.error(f'"{path}" is a {type(found).__name__} and no function', inside)
    return found

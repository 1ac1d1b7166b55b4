"""What AG2 1.x's own objects are made of, and what of them a copy keeps, starts anew or leaves behind.

A conversation lives on a stream that is made for each ask, so an agent is configuration, and that is copied. What it
shares with its copies is what never changes: tools, unless their code leads back to an agent, response schemas, model
configurations (each attempt gets governed ones in their place) and middleware, which makes its state for each turn.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ag2.agent import Agent, TaskConfig
from ag2.network import Hub, HubClient
from ag2.stream import MemoryStream
from ag2.tools.final import FunctionTool
from fast_depends import Provider
from fast_depends.core import CallModel

from ag2_parallel.frameworks.ag2.kinds import is_model_config
from ag2_parallel.frameworks.ag2.workflow_team import WorkflowTeam
from ag2_parallel.frameworks.cloning.anatomy import attribute, instance, take_apart
from ag2_parallel.frameworks.cloning.node import Anatomy, Body, Fresh, Kind, Level, Part, Place, TeamRules

if TYPE_CHECKING:
    from collections.abc import Callable

_LEVELS = {
    "tools": Level.HELD,
    "config": Level.SHARED,
    "dependency_provider": Level.SHARED,
    "_additional_tools": Level.HELD,
    "_dynamic_prompt": Level.HELD,
    "_hitl_hook": Level.SHARED,
    "_middleware": Level.HELD,
    "_response_schema": Level.SHARED,
    "_serializer": Level.SHARED,
    "_tool_executor": Level.SHARED,
}
"""How closely an agent's attributes belong to it, where that is less than wholly."""

_OWN_FACTORIES = "ag2.agent"
"""The module of the middleware that an agent makes for itself, around its knowledge and its policies."""

_REFUSED = {
    "DiskKnowledgeStore": "keeps what it learns in one folder, which copies would share",
    "SqliteKnowledgeStore": "keeps what it learns in one database, which copies would share",
    "RedisKnowledgeStore": "keeps what it learns in one database, which copies would share",
    "MCPToolkit": "speaks through one connection, which copies would share",
}
_STREAM = "keeps the conversations held on it, which copies would share"
_HUB = "is one network of agents, which copies would share"


def dissect(obj: Any, level: Level) -> Anatomy:
    """Take any object apart, AG2's own by their meaning and others by their type."""
    for kind, rule in _RULES:
        if isinstance(obj, kind):
            return rule(obj, level)
    cls = type(obj)
    refused = next(
        (_REFUSED[base.__name__] for base in cls.__mro__ if base.__name__ in _REFUSED and _is_ag2s(base)), None
    )
    if refused is not None:
        return Anatomy(Kind.OPAQUE, copied=True, refusal=refused)
    if is_model_config(obj):
        return Anatomy(Kind.OPAQUE, copied=False)
    if cls.__module__ == _OWN_FACTORIES:
        return _of_the_agents(obj)
    return take_apart(obj, level)


def _agent(obj: Agent[Any], _: Level) -> Anatomy:
    def part_of(name: str, value: Any) -> Part:
        place = Place("attr", name)
        if name == "_task_slots":
            return Part(place, Fresh(weakref.WeakKeyDictionary), Level.OWNED, name, _fresh)
        return Part(place, value, _LEVELS.get(name, Level.OWNED), name)

    return instance(obj, part_of, copied=True)


def _of_the_agents(obj: Any) -> Anatomy:
    """An object that an agent keeps for itself, whose lock is bound to a loop and is made anew."""
    made = instance(obj, attribute(Level.OWNED), copied=True)
    body = made.snapshot
    locks = [name for name in body.attributes or () if name.endswith("__lock")]
    attributes = None if body.attributes is None else {**body.attributes, **dict.fromkeys(locks)}
    parts = [part for part in made.parts if part.place.key not in locks]
    return made._replace(snapshot=Body(body.type, attributes, body.slots), parts=parts)


def _task_config(obj: TaskConfig, _: Level) -> Anatomy:
    held = {"extra_tools": Level.HELD, "config": Level.SHARED}
    return instance(
        obj, lambda name, value: Part(Place("attr", name), value, held.get(name, Level.OWNED), f".{name}"), copied=True
    )


def _workflow_team(obj: WorkflowTeam, _: Level) -> Anatomy:
    return instance(
        obj,
        lambda name, value: Part(
            Place("attr", name), value, Level.SHARED if name == "graph" else Level.HELD, f".{name}"
        ),
        copied=True,
    )


def _tool(obj: Any, _: Level) -> Anatomy:
    """A tool never changes, so it is shared unless it leads to the team."""
    return instance(obj, attribute(Level.SHARED), copied=False)


def _call_model(obj: CallModel, _: Level) -> Anatomy:
    """Of what calls a function, only the function can lead to the team."""
    made = instance(obj, attribute(Level.SHARED), copied=False)
    return made._replace(parts=[part for part in made.parts if part.place.key == "call"])


def _opaque(_: Any, __: Level) -> Anatomy:
    return Anatomy(Kind.OPAQUE, copied=False)


def _fresh(obj: Fresh, _: Level) -> Anatomy:
    return Anatomy(Kind.FRESH, copied=True, snapshot=obj.factory)


def _refused(reason: str) -> Callable[[Any, Level], Anatomy]:
    return lambda _obj, _level: Anatomy(Kind.OPAQUE, copied=True, refusal=reason)


def _is_ag2s(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "ag2"


def _owner(obj: Any) -> str:
    if isinstance(obj, Agent):
        return f"agent {obj.name!r}"
    return "the team" if isinstance(obj, WorkflowTeam) else f"the {type(obj).__name__}"


_RULES: tuple[tuple[Any, Callable[[Any, Level], Anatomy]], ...] = (
    (Agent, _agent),
    (WorkflowTeam, _workflow_team),
    (TaskConfig, _task_config),
    (MemoryStream, _refused(_STREAM)),
    ((Hub, HubClient), _refused(_HUB)),
    (CallModel, _call_model),
    (Provider, _opaque),
    (FunctionTool, _tool),
)
"""What is taken apart by its meaning; the first that fits."""

RULES = TeamRules(
    members=(Agent, WorkflowTeam, MemoryStream, Hub, HubClient),
    owners=(Agent,),
    owner=_owner,
    dissect=dissect,
)
"""What AG2 1.x calls a team."""

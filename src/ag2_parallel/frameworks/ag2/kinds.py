"""What of AG2 1.x an object is, told without importing AG2.

An object can only be AG2's if its module was imported before, so looking among the loaded modules is enough.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from ag2_parallel.frameworks.ag2.workflow_team import WorkflowTeam

_AGENT: Final = ("ag2.agent", "Agent")
_SPEC: Final = ("ag2.spec", "AgentSpec")

CONFIG_TYPE: Final = "ag2.Agent"
"""The `"type"` of an `agent_config` that describes an agent of AG2 1.x."""


def is_agent(thing: object) -> bool:
    """Whether it is an `ag2.Agent`."""
    return _is(thing, _AGENT)


def is_agent_class(thing: type) -> bool:
    """Whether it is a class of agents, not an agent."""
    module, name = _AGENT
    cls = getattr(sys.modules.get(module), name, None)
    return isinstance(cls, type) and issubclass(thing, cls)


def is_spec(thing: object) -> bool:
    """Whether it is an `ag2.AgentSpec`."""
    return _is(thing, _SPEC)


def is_team(thing: object) -> bool:
    """Whether it is a `WorkflowTeam`."""
    return isinstance(thing, WorkflowTeam)


def is_model_config(thing: object) -> bool:
    """Whether it is a model configuration of AG2 1.x: something that makes a client, and is no configuration of Classic's."""
    if "ag2.config.config" not in sys.modules or isinstance(thing, type | Mapping):
        return False
    return callable(getattr(thing, "create", None)) and hasattr(type(thing), "provider") and hasattr(thing, "model")


def describes_agent(agent_config: Any) -> bool:
    """Whether an `agent_config` describes an agent of AG2 1.x."""
    return isinstance(agent_config, Mapping) and agent_config.get("type") == CONFIG_TYPE


def _is(thing: object, place: tuple[str, str]) -> bool:
    module, name = place
    cls = getattr(sys.modules.get(module), name, None)
    return isinstance(cls, type) and isinstance(thing, cls)

"""Model configurations of an attempt's agents: found, learnt as secrets, and governed by the gate."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks.ag2.kinds import is_model_config

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope

Govern = Callable[[Any, "AttemptScope"], Any]
"""From a model configuration to a copy of it whose clients go through the scope's gate."""


def governed_by_gate(config: Any, scope: AttemptScope) -> Any:
    """The configuration's governed copy."""
    from ag2_parallel.frameworks.ag2.govern import governed

    return governed(config, scope)


def configs_of(agent: Any) -> Iterator[tuple[Any, str, Any]]:
    """Where an agent keeps model configurations: holder, attribute, configuration."""
    holders = [agent, agent.tasks]
    knowledge = getattr(agent._knowledge_context, "config", None)  # noqa: SLF001 - no public name has it
    if knowledge is not None:
        holders += [knowledge.compact, knowledge.aggregate]
    for holder in holders:
        for name in ("config", "_config"):
            config = getattr(holder, name, None)
            if is_model_config(config):
                yield holder, name, config


def govern_agent(agent: Any, scope: AttemptScope, default: Any, govern: Govern) -> None:
    """Govern every model configuration of an agent of this attempt; one without any gets `default`."""
    if agent.config is None:
        agent.config = default
    for holder, name, config in list(configs_of(agent)):
        scope.redactor.learn(secrets_of(config))
        setattr(holder, name, govern(config, scope))


def without_key(govern: Govern) -> Govern:
    """The same for configurations that need no key: one without any gets a word in its place, which SDKs insist on."""

    def governed(config: Any, scope: AttemptScope) -> Any:
        if getattr(config, "api_key", "given") is None:
            config = copy.copy(config)
            config.api_key = "none"
        return govern(config, scope)

    return governed


def secrets_of(config: Any) -> dict[str, Any]:
    """A configuration's fields by name, for the redactor."""
    names = [field.name for field in fields(config)] if is_dataclass(config) else list(getattr(config, "__dict__", ()))
    return {name: getattr(config, name, None) for name in names}


def named_model(config: Any) -> tuple[str, str, bool] | None:
    """Name and endpoint of a configuration's model; AG2 1.x keeps no prices there."""
    model = getattr(config, "model", None)
    return (model, str(getattr(config, "base_url", None) or ""), False) if isinstance(model, str) else None

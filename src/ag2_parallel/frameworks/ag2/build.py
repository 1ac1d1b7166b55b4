"""Agents of AG2 1.x made of what describes them: an `agent_config`, or an `AgentSpec`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.frameworks.ag2.kinds import is_model_config

_PROVIDERS: Final = {
    "openai": "OpenAIConfig",
    "openai_responses": "OpenAIResponsesConfig",
    "anthropic": "AnthropicConfig",
    "gemini": "GeminiConfig",
    "vertexai": "VertexAIConfig",
    "bedrock": "BedrockConfig",
    "dashscope": "DashScopeConfig",
    "mistral": "MistralConfig",
    "ollama": "OllamaConfig",
    "xai": "XAIConfig",
    "zai": "ZAIConfig",
}
"""What `"provider"` in a model configuration given as a dict may be, and the class of `ag2.config` it stands for."""

_OURS: Final = ("type", "agents", "description")

_MEANT: Final = {
    "system_message": "prompt",
    "llm_config": "config",
    "functions": "tools",
    "output_type": "response_schema",
}
"""What Classic calls a key."""


def build_agent(agent_config: Mapping[str, Any], name: str, default: Any) -> Any:
    """The agent that an `agent_config` of type "ag2.Agent" describes.

    Args:
        agent_config: Keyword arguments of `ag2.Agent`. `config` may be a dict: `provider`, "openai" where it is left
            out, and the arguments of that configuration. Of `tools`, and of `response_schema`, texts are
            "module:attribute". `agents` are descriptions like this one, each with a `description`, that become tools.
        name: The agent's name where the description has none.
        default: A model configuration where the description has none.

    Raises:
        ConfigurationError: If it describes no agent.
    """
    from ag2 import Agent

    arguments = {key: value for key, value in agent_config.items() if key not in _OURS}
    arguments["name"] = arguments.get("name") or name
    arguments["config"] = model_config(arguments.get("config")) or default
    tools = [_located(tool) for tool in arguments.get("tools") or ()]
    for number, behind in enumerate(agent_config.get("agents") or ()):
        agent = build_agent(behind, f"{arguments['name']}_{number + 1}", arguments["config"])
        tools.append(agent.as_tool(description=behind.get("description") or f"Ask {agent.name}."))
    arguments["tools"] = tools
    if "response_schema" in arguments:
        arguments["response_schema"] = _located(arguments["response_schema"])
    for own in ("variables", "dependencies"):
        if own in arguments:
            arguments[own] = dict(arguments[own] or {})
    return Agent(**arguments)


def agent_of_spec(spec: Any, default: Any) -> Any:
    """The agent of an `AgentSpec`, on the runner's model."""
    return spec.to_agent(config=default)


def model_config(given: Any) -> Any:
    """A model configuration, given as it is or as a dict.

    Raises:
        ConfigurationError: If it is none.
    """
    if given is None or is_model_config(given):
        return given
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"config: a {type(given).__name__} is no model configuration of AG2 1.x and no dict")
    provider = str(given.get("provider", "openai"))
    if provider not in _PROVIDERS:
        near = get_close_matches(provider, _PROVIDERS, n=1, cutoff=0.5)
        hint = f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(_PROVIDERS)}"
        raise ConfigurationError(f'config: provider "{provider}" is not known{hint}')
    cls = getattr(importlib.import_module("ag2.config"), _PROVIDERS[provider])
    try:
        return cls(**{key: value for key, value in given.items() if key != "provider"})
    except TypeError as error:
        raise ConfigurationError(f"config: {str(error).partition(') ')[2] or error}") from error


def config_problems(agent_config: Mapping[str, Any], default: Any, where: str = "agent_config") -> list[str]:
    """What is wrong with a description."""
    found = [f"{where}: unknown key {key!r}{_near(str(key))}" for key in agent_config if key not in _keys()]
    try:
        own = model_config(agent_config.get("config"))
    except (ConfigurationError, ImportError) as error:
        found.append(f"{where}: {error}")
    else:
        if own is None and default is None:
            found.append(f"{where} has no config and neither has the runner an llm_config of AG2 1.x; set one")
        default = own or default
    for name in ("tools", "response_schema"):
        given = agent_config.get(name)
        for each in given if name == "tools" and isinstance(given, list | tuple) else [given]:
            try:
                _located(each)
            except ConfigurationError as error:
                found.append(f"{where}: {name}: {error}")
    behind = agent_config.get("agents") or ()
    if not isinstance(behind, list | tuple) or not all(isinstance(each, Mapping) for each in behind):
        return [*found, f"{where}: agents is no list of descriptions"]
    for number, each in enumerate(behind):
        found += config_problems(each, default, f"{where}: agents[{number}]")
    return found


@cache
def _keys() -> tuple[str, ...]:
    from ag2 import Agent

    return (*_OURS, *(name for name in inspect.signature(Agent.__init__).parameters if name != "self"))


def _near(key: str) -> str:
    close = get_close_matches(key, _keys(), n=1, cutoff=0.6)
    meant = _MEANT.get(key) or (close[0] if close else None)
    return f'; did you mean "{meant}"?' if meant else f"; known are {', '.join(_keys())}"


def _located(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    module, _, attribute = given.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f'"{given}" cannot be imported: {error}') from error

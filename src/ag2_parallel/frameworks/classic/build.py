"""From a task's `agent_config` to an agent, and what is wrong with one that cannot become an agent."""

from __future__ import annotations

import copy
import hashlib
import importlib
import marshal
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.frameworks.classic.model_configs import (
    PlaceholderClient,
    as_llm_config,
    give_keys,
    ignored_client_problem,
    is_routed,
)

CONFIG_KEYS: Final = (
    "name", "system_message", "is_termination_msg", "max_consecutive_auto_reply", "human_input_mode", "function_map",
    "code_execution_config", "llm_config", "default_auto_reply", "description", "silent", "context_variables",
    "functions", "update_agent_state_before_reply", "handoffs",
)  # fmt: skip
"""What an `agent_config` may have beside `type`: the keyword arguments of `ConversableAgent`."""

_MOST_ACCEPTED: Final = 1000

_accepted: set[bytes] = set()
"""Digests of model configurations that AG2 took: thousands of tasks have the same in a dict of their own."""

TYPES: Final = ("AssistantAgent", "UserProxyAgent", "ConversableAgent")

_MODES: Final = ("NEVER", "TERMINATE", "ALWAYS")

_MEANT: Final = {
    "tools": "functions", "model": "llm_config", "config_list": "llm_config", "instructions": "system_message",
    "prompt": "system_message", "system_prompt": "system_message", "class": "type",
}  # fmt: skip
"""Keys of other frameworks and what they are called here."""

_TYPES_OF_VALUES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "name": (lambda v: isinstance(v, str) and bool(v.strip()), "text that is not blank"),
    "system_message": (lambda v: v is None or isinstance(v, str | list), "text or a list of message parts"),
    "is_termination_msg": (lambda v: v is None or callable(v), "a function of the message"),
    "max_consecutive_auto_reply": (
        lambda v: v is None or (isinstance(v, int) and not isinstance(v, bool) and v >= 0),
        "a whole number from 0",
    ),
    "human_input_mode": (lambda v: v in _MODES, 'one of "NEVER", "TERMINATE", "ALWAYS"'),
    "function_map": (
        lambda v: v is None or (isinstance(v, Mapping) and all(map(callable, v.values()))),
        "a mapping from names to functions",
    ),
    "code_execution_config": (lambda v: v is False or isinstance(v, Mapping), "False or a mapping"),
    "description": (lambda v: v is None or isinstance(v, str), "text"),
    "silent": (lambda v: v is None or isinstance(v, bool), "True or False"),
    "functions": (
        lambda v: v is None or callable(v) or (isinstance(v, list | tuple) and all(map(callable, v))),
        "a function or a list of functions",
    ),
}

DEFAULT_NAME: Final = "assistant"


def agent_name(task_name: str) -> str:
    """A task's name made fit for an AG2 agent: letters, digits, `_` and `-`, at most 64 of them."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", task_name)[:64] or DEFAULT_NAME


def config_problems(task_name: str, config: Mapping[str, Any]) -> list[str]:
    """What stands against building an agent from `config`, without building one. No value of a secret is told."""
    where = f'task "{task_name}": agent_config'
    if not isinstance(config, Mapping):
        return [f"{where} is a {type(config).__name__}; give a mapping of ConversableAgent's keyword arguments"]
    found = [f"{where}: {problem}" for problem in _type_problems(config.get("type", TYPES[2]))]
    standard = config.get("type", TYPES[2]) in TYPES
    for key, value in config.items():
        if key == "type":
            continue
        if key == "chat_messages":
            found.append(
                f"{where}: chat_messages is not taken, an agent starts without history; give earlier messages in prompt"
            )
        elif key not in CONFIG_KEYS and standard:
            found.append(f"{where} has an unknown key {key!r}{_near(str(key))}")
        elif key in _TYPES_OF_VALUES and not _TYPES_OF_VALUES[key][0](value):
            found.append(f"{where}: {key} must be {_TYPES_OF_VALUES[key][1]}, not {_shown(value)}")
    name = config.get("name")
    if isinstance(name, str) and re.search(r"\s", name.strip() and name):
        found.append(f'{where}: name "{name}" has blanks in it, which model providers refuse; use "{agent_name(name)}"')
    if found or not config.get("llm_config"):
        return found
    problem = llm_config_problem(config["llm_config"])
    return [f"{where}: llm_config {problem}"] if problem else []


def llm_config_problem(config: Any) -> str | None:
    """Why AG2 refuses a model configuration, without the values in it; None if it takes it."""
    content = _content(config)
    digest = None if content is None else hashlib.blake2b(content).digest()  # a key in it is not kept
    if digest in _accepted:
        return None
    problem = _looked_for_problem(config)
    if problem is None and digest is not None and len(_accepted) < _MOST_ACCEPTED:
        _accepted.add(digest)
    return problem


def _looked_for_problem(config: Any) -> str | None:
    from pydantic import ValidationError

    if isinstance(config, str):
        return "is text; give a mapping with model, api_key and base_url, or an LLMConfig"
    if type(config).__module__.partition(".")[0] == "ag2":
        return of_the_other_line(config)
    try:
        return ignored_client_problem(as_llm_config(config))
    except ValidationError as error:
        told = error.errors(include_input=False, include_url=False, include_context=False)
        return "is not valid: " + "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in told[:5])
    except (TypeError, ValueError, AttributeError) as error:
        text = str(error).replace("LLMConfig.__init__()", "LLMConfig")
        unknown = re.search(r"unexpected keyword argument '(\w+)'", text)
        hint = f"; put {unknown[1]!r} into the entries of config_list" if unknown else ""
        return f"is not valid: {text}{hint}"


def of_the_other_line(config: Any) -> str:
    """What is wrong with a configuration of AG2 1.x where AG2 Classic's is wanted."""
    return (
        f"is of the other line: {type(config).__name__} of AG2 1.x, which agents of AG2 Classic cannot use; give a mapping "
        'or an LLMConfig, or make the agent one of AG2 1.x with agent_config={"type": "ag2.Agent", ...}'
    )


def placeholder_config(config: Any, *, keyless: bool = False) -> Any:
    """The configuration of an agent that is only ever copied: without a TLS set-up of its own."""
    if not config:
        return config
    held = as_llm_config(config)
    if keyless:
        give_keys(held)
    for entry in held.config_list:
        if is_routed(entry):
            entry.http_client = PlaceholderClient(entry.http_client)
            entry.max_retries = 0
    return held


def build_agent(config: Mapping[str, Any], name: str, *, keyless: bool = False) -> Any:
    """An agent from a configuration, fit to be copied.

    Args:
        config: Keyword arguments of `ConversableAgent`, and `type`; left as it is.
        name: Where the configuration has none.
        keyless: Whether its model configuration needs no key.

    Raises:
        ConfigurationError: If its class cannot be had.
        Exception: What AG2 says about arguments that it refuses.
    """
    arguments = {"human_input_mode": "NEVER", "name": name} | {key: _own(value) for key, value in config.items()}
    cls = _class(arguments.pop("type", TYPES[2]))
    functions = arguments.pop("functions", None) or ()
    arguments["llm_config"] = placeholder_config(arguments.get("llm_config"), keyless=keyless)
    variables = arguments.get("context_variables")
    if isinstance(variables, Mapping):
        from autogen.agentchat.group import ContextVariables

        arguments["context_variables"] = ContextVariables(data=copy.deepcopy(dict(variables)))
    agent = cls(**arguments)
    for function in [functions] if callable(functions) else functions:
        # AG2's own `functions=` would write a name and a description onto the user's function
        described = getattr(function, "_description", None) or (function.__doc__ or "").strip()
        named = getattr(function, "_name", None) or getattr(function, "__name__", None)
        agent.register_for_llm(name=named, description=described, silent_override=True)(function)
    return agent


def _own(value: Any) -> Any:
    """A container of the configuration's own, so that AG2 changes nothing of the caller's."""
    if isinstance(value, dict):
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if isinstance(value, list) else value


def _class(name: Any) -> Any:
    if isinstance(name, type):
        return name
    if name in TYPES:
        return getattr(importlib.import_module("autogen"), name)
    module, _, attribute = str(name).partition(":")
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f'type "{name}" cannot be imported: {error}') from error
    return cls


def _type_problems(name: Any) -> list[str]:
    if isinstance(name, str) and name in TYPES:
        return []
    if isinstance(name, str) and ":" not in name:
        near = get_close_matches(name, TYPES, n=1, cutoff=0.5)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        return [f'type "{name}" is none of {", ".join(TYPES)} nor "module:Class"{hint}']
    try:
        cls = _class(name)
    except ConfigurationError as error:
        return [str(error)]
    from autogen import ConversableAgent

    if not isinstance(cls, type) or not issubclass(cls, ConversableAgent):
        return [f"type {name!r} is no subclass of ConversableAgent"]
    return []


def _near(key: str) -> str:
    close = get_close_matches(key, (*CONFIG_KEYS, "type"), n=1, cutoff=0.6)
    meant = _MEANT.get(key.lower()) or (close[0] if close else None)
    return f'; did you mean "{meant}"?' if meant else f"; known are type, {', '.join(CONFIG_KEYS)}"


def _shown(value: Any) -> str:
    return (
        repr(value) if isinstance(value, int | float | str) and len(repr(value)) < 60 else f"a {type(value).__name__}"
    )


def fingerprint(value: Any) -> Any:
    """A hashable key of a configuration's content; what has no content to compare counts by identity.

    The caller keeps the configuration alive as long as the key is used.
    """
    content = _content(value)
    if content is not None:
        return content
    if isinstance(value, Mapping):
        return (type(value), tuple((key, fingerprint(value[key])) for key in value))
    if isinstance(value, list | tuple):
        return (type(value), tuple(map(fingerprint, value)))
    if value is None or isinstance(value, str | int | float | bool | bytes):
        return (type(value), value)
    return (type(value), id(value))


def _content(value: Any) -> bytes | None:
    """Plain data in bytes, types included, found ten times as fast as part by part; None for everything else."""
    try:
        return marshal.dumps(value, 0)  # without references: the same content has the same bytes
    except ValueError:
        return None

"""What a task would do, as a short digest: two lives of a run compare their tasks by it.

In it are the prompt, the configuration without secrets, endpoints' credentials and prices, the context, `max_turns` and what else goes
into the chat, the schema of `output_type`, and functions by their `module:qualname` with the plain data they hold in
closures and partial arguments. Never code, line numbers, limits or metadata: a comment moved, or a longer timeout, is
no reason to pay again.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.redaction import SECRET_NAMES, masked_text
from ag2_parallel.tasks import Template

if TYPE_CHECKING:
    from ag2_parallel.tasks import ParallelTask

_TOLD: Final = (
    "prompt", "agent_config", "agent", "run", "max_turns", "summary_method", "summary_args", "context", "output_type",
    "depends_on",
)  # fmt: skip
"""The fields that say what a task does."""

_TERMS: Final = frozenset({
    "price", "timeout", "max_retries", "cache_seed", "http_client", "default_headers", "organization", "direct",
})  # fmt: skip
"""Keys of a model configuration that say on what terms a model is asked, and not what."""

_MODEL_CONFIGS: Final = frozenset({"llm_config", "config_list", "config"})

_OF_LIVE_OBJECTS: Final = (
    "name", "system_message", "description", "llm_config", "config_list", "config", "prompt", "agents", "max_round",
    "speaker_selection_method", "initial_agent", "instructions",
)  # fmt: skip
"""Attributes that tell two live agents or teams of one class apart."""

_DEEPEST: Final = 12
_NUMBERS: Final = (bool, int, float)

_encoded: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def fingerprint(task: ParallelTask, llm_config: Any = None, salt: str = "") -> str:
    """The digest of what a task would do.

    Args:
        task: The task.
        llm_config: The runner's model configuration, which counts where the task names no agent or its
            `agent_config` has none.
        salt: Makes digests of different runs differ, so that nobody can look a configuration up by its digest.
    """
    told = {
        name: described(value, config=name in _MODEL_CONFIGS)
        for name in _TOLD
        if (value := getattr(task, name)) is not None and not (name == "depends_on" and not value)
    }
    has_own = task.agent is not None or task.run is not None or "llm_config" in (task.agent_config or {})
    if not has_own and llm_config is not None:
        told["llm_config"] = described(llm_config, config=True)
    return hashlib.blake2b(_encoded(told).encode(), key=salt.encode()[:64], digest_size=16).hexdigest()


def described(value: Any, depth: int = 0, *, config: bool = False) -> Any:
    """A value as plain data that stays the same from one process to the next; `config`: it is a model configuration."""
    if value is None or isinstance(value, _NUMBERS):
        return value
    if isinstance(value, str):
        return masked_text(value)  # an address may hold credentials
    if type(value) is FunctionType:
        return _function(value, depth)
    return "…" if depth > _DEEPEST else _collection(value, depth, config=config)


def _collection(value: Any, depth: int, *, config: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            str(key): described(item, depth + 1, config=config or key in _MODEL_CONFIGS)
            for key, item in value.items()
            if not _is_left_out(key, config=config)
        }
    if isinstance(value, bytes | bytearray):
        return {"bytes": hashlib.blake2b(bytes(value), digest_size=16).hexdigest()}
    if isinstance(value, AbstractSet):
        return sorted((described(item, depth + 1, config=config) for item in value), key=repr)
    if isinstance(value, Sequence):
        return [described(item, depth + 1, config=config) for item in value]
    return _object(value, depth, config=config)


def _object(value: Any, depth: int, *, config: bool) -> Any:
    if isinstance(value, type) or _is_annotation(value):
        return _type(value)
    if isinstance(value, Template):
        return {"template": value.text}
    if isinstance(value, functools.partial):
        return {
            "function": described(value.func, depth + 1),
            "arguments": described(value.args, depth + 1),
            "keywords": described(value.keywords, depth + 1),
        }
    if callable(value) and hasattr(value, "__qualname__"):
        return _function(value, depth)
    fields = getattr(type(value), "model_fields", None)
    if fields is not None:
        held = {name: getattr(value, name, None) for name in fields}
        return {"type": _name(type(value)), **described(held, depth + 1, config=config)}
    known = {name: found for name in _OF_LIVE_OBJECTS if (found := _attribute(value, name)) is not None}
    return {"type": _name(type(value)), **described(known, depth + 1, config=config)}


def _function(function: Callable[..., Any], depth: int) -> Any:
    told: dict[str, Any] = {"function": _name(function)}
    closure = (
        inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) and function.__closure__ else {}
    )
    if closure:
        told["closure"] = described({name: held for name, held in closure.items() if held is not function}, depth + 1)
    bound = getattr(function, "__self__", None)
    if bound is not None and not inspect.ismodule(bound):
        told["self"] = described(bound, depth + 1)
    return told


def _type(annotation: Any) -> Any:
    """A type by its JSON schema where it has one: that is what an answer must fit."""
    schema = getattr(annotation, "model_json_schema", None)
    if schema is not None:
        try:
            return {"schema": schema()}
        except Exception:  # a model that has none, such as one with a field of any class
            return {"type": _name(annotation)}
    return {"type": _name(annotation) if isinstance(annotation, type) else str(annotation)}


def _is_annotation(value: Any) -> bool:
    return hasattr(value, "__origin__") and hasattr(value, "__args__")


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def _attribute(value: Any, name: str) -> Any:
    try:
        found = inspect.getattr_static(type(value), name, None)
        if found is not None and not isinstance(found, property) and callable(found):
            return None  # a method of that name says nothing
        return getattr(value, name, None)
    except Exception:  # a property that raises says nothing either
        return None


def _is_left_out(key: object, *, config: bool) -> bool:
    return isinstance(key, str) and (SECRET_NAMES.search(key) is not None or (config and key in _TERMS))

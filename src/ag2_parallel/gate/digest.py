"""What names a request by what it asks, so that the same request is known again in another life of its run.

Left out is what changes by nature, or must not be kept: headers, keys, the order of an object's keys, the gate's own
wish for the usage of a stream, and what tool calls are called: their ids count by where they stand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from ag2_parallel.redaction import SECRET_NAMES

if TYPE_CHECKING:
    from ag2_parallel.gate.request import ModelRequest

_REFERENCES: Final = frozenset({"tool_call_id", "tool_use_id", "call_id"})
"""Keys whose values are ids of tool calls."""

_CALLS: Final = frozenset({"function", "custom", "function_call", "custom_tool_call", "tool_use"})
"""The `type` of what is a tool call, and has its id under `id`."""

_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a request asks, named.

    Attributes:
        digest: Its name.
        content: Plain data, keys masked.
    """

    digest: str
    content: Any


def request_content(request: ModelRequest) -> Any:
    """What a request asks, as plain data that can be compared and shown."""
    try:
        asked = json.loads(request.body)
    except (ValueError, RecursionError):
        asked = request.body.decode("utf-8", "backslashreplace")
    address = urlsplit(request.url)
    query = {name: value for name, value in parse_qsl(address.query) if not _is_secret(name)}
    return _content(request.endpoint, asked, path=address.path, **({"query": query} if query else {}))


def foreign_content(model: str | None, endpoint: str, asked: Any) -> Any:
    """The same of a call that another client sends."""
    return _content(endpoint, asked, model=model)


def digest_of(content: Any) -> str:
    """The name of a request's content: 64 hexadecimal digits."""
    return hashlib.sha256(canonical(content).encode("ascii")).hexdigest()


def canonical(content: Any) -> str:
    """Plain data as JSON text that is the same for the same data; ASCII alone, so that halves of pairs are no trouble."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _content(endpoint: str, asked: Any, **more: Any) -> dict[str, Any]:
    if isinstance(asked, Mapping):
        asked = {name: value for name, value in asked.items() if not _is_secret(str(name))}
    return {"endpoint": endpoint, **more, "asked": _plain(asked, {})}


def _is_secret(name: str) -> bool:
    return name == "key" or SECRET_NAMES.search(name) is not None


def _plain(value: Any, ids: dict[str, str], depth: int = 0) -> Any:
    """The value with the ids of tool calls renumbered, as data that JSON can hold."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if depth > _DEEPEST:
        return _named(value)
    if isinstance(value, Mapping):
        is_call = value.get("type") in _CALLS if isinstance(value.get("type"), str) else False
        return {
            str(name): _renumbered(item, ids)
            if isinstance(item, str) and (name in _REFERENCES or (is_call and name == "id"))
            else _plain(item, ids, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, ids, depth + 1) for item in value]
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _plain(value.model_dump(), ids, depth + 1)
    return _named(value)


def _renumbered(name: str, ids: dict[str, str]) -> str:
    return ids.setdefault(name, f"call-{len(ids) + 1}")


def _named(value: Any) -> str:
    """What is no data, by its own name or its class's: never by its address, which is another in each process."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"<{named.__module__}.{named.__qualname__}>"

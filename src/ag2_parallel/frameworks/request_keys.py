"""What the requests of an OpenAI SDK client depend on, as keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CONTROLS: Final = ("extra_headers", "extra_query", "timeout")
"""Parameters of a call that shape the request around its body."""

_NOT_ASKED: Final = frozenset({"_client", "max_retries", "_default_stream_cls", "_platform"})
"""Attributes of an SDK client that no request depends on."""


def configuration(sdk: Any) -> tuple[Any, ...] | None:
    """All that a client's requests depend on, as a key; None where there is more to it than values.

    A key that is made anew for each request, a token provider, a subclass: those stay with the SDK.
    """
    from openai import AsyncAzureOpenAI, AsyncOpenAI, AzureOpenAI, OpenAI

    if type(sdk) not in {OpenAI, AzureOpenAI, AsyncOpenAI, AsyncAzureOpenAI}:
        return None
    found: list[Any] = [type(sdk)]
    for name, value in vars(sdk).items():
        if name in _NOT_ASKED or type(value).__module__.startswith("openai.resources."):
            continue
        if value is not None:
            key = plain(value)
            if key is None:
                return None
            found.append((name, key))
    return tuple(found)


def plain(value: Any) -> Any:
    """A hashable key of a plain value; None for everything that may do something by itself."""
    if isinstance(value, str | int | float | bool | frozenset):
        return (type(value), value)
    if isinstance(value, Mapping):
        items = tuple((name, None if item is None else (plain(item) or _Unknown)) for name, item in value.items())
        return None if any(item is _Unknown for _, item in items) else (dict, items)
    if type(value).__name__ in {"URL", "Timeout"}:
        return (type(value), repr(value) if type(value).__name__ == "Timeout" else str(value))
    return None


class _Unknown:
    """Marks what has no key."""

"""What the requests of an OpenAI SDK client depend on, as keys."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

CONTROLS: Final = ("extra_headers", "extra_query", "timeout")
"""Parameters of a call that shape the request around its body."""

_NOT_ASKED: Final = frozenset({"_client", "max_retries", "_default_stream_cls", "_platform"})
"""Attributes of an SDK client that no request depends on."""


class Configurations:
    """The keys of SDK clients, found anew where a client's attributes have changed. Safe from any thread."""

    def __init__(self) -> None:
        """Nothing known yet."""
        self._lock = threading.Lock()
        self._known: weakref.WeakKeyDictionary[Any, _Known] = weakref.WeakKeyDictionary()

    def of(self, sdk: Any) -> tuple[Any, ...] | None:
        """`configuration(sdk)`; all copies of an agent share its client, for which that is found once."""
        with self._lock:
            known = self._known.get(sdk)
        if known is not None and known.holds_for(vars(sdk)):
            return known.key
        key = configuration(sdk)
        if key is not None:  # then all of its values are plain, and none of them refers to the client
            with self._lock:
                self._known[sdk] = _Known(key, vars(sdk))
        return key


class _Known:
    """A client's key, and what it had been found from."""

    def __init__(self, key: tuple[Any, ...], attributes: Mapping[str, Any]) -> None:
        names = [name for name, value in attributes.items() if _is_asked(name, value)]
        self.key = key
        self._number = len(attributes)
        self._values = itemgetter(*names)
        self._found = tuple(map(copy.copy, self._values(attributes)))  # headers and timeouts may be changed in place

    def holds_for(self, attributes: Mapping[str, Any]) -> bool:
        return len(attributes) == self._number and self._values(attributes) == self._found


def configuration(sdk: Any) -> tuple[Any, ...] | None:
    """All that a client's requests depend on, as a key; None where there is more to it than values.

    A key that is made anew for each request, a token provider, a subclass: those stay with the SDK.
    """
    from openai import AsyncAzureOpenAI, AsyncOpenAI, AzureOpenAI, OpenAI

    if type(sdk) not in {OpenAI, AzureOpenAI, AsyncOpenAI, AsyncAzureOpenAI}:
        return None
    found: list[Any] = [type(sdk)]
    for name, value in vars(sdk).items():
        if value is not None and _is_asked(name, value):
            key = plain(value)
            if key is None:
                return None
            found.append((name, key))
    return tuple(found)


def _is_asked(name: str, value: Any) -> bool:
    return name not in _NOT_ASKED and not type(value).__module__.startswith("openai.resources.")


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

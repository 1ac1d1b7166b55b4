"""AG2 model configurations in every form a user may write them, and which of their entries can go through the gate."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import httpx

from ag2_parallel.frameworks.named_prices import named_price

ROUTED_API_TYPES: Final = frozenset({"openai", "azure", "deepseek", "openai_v2", "responses", "responses_v2"})
"""Providers whose AG2 client speaks through the `http_client` of its configuration entry."""

Price: TypeAlias = tuple[float, float]
"""US dollars for 1,000 prompt tokens and for 1,000 completion tokens."""

_WITHOUT_KEYS: Final = frozenset({"ollama", "bedrock", "bedrock_v2"})
"""Providers whose clients are made without an API key."""

_MISSPELT: Final = {name.replace("_", ""): name for name in ("api_key", "base_url", "api_type", "api_version")}

DIRECT: Final = "direct"
"""The key of an entry whose False keeps its calls off the direct door; neither AG2 nor a server ever sees it."""


class Route(NamedTuple):
    """How the user wants an entry's calls to be sent.

    Attributes:
        through: The user's own HTTP client.
        price: The user's price.
        direct: Whether plain chats may be sent without an SDK.
    """

    through: httpx.Client | None = None
    price: Price | None = None
    direct: bool = True


_routes: weakref.WeakKeyDictionary[httpx.Client, Route] = weakref.WeakKeyDictionary()
_routes_lock = threading.Lock()


class PlaceholderClient(httpx.Client):
    """Stands for the gate's client in an agent that is only ever copied: no connection, no TLS set-up."""

    def __init__(self, through: httpx.Client | None = None) -> None:
        """Keep the user's own client, to be sent with later, and its timeout, which the SDK takes over."""
        timeouts = {} if through is None else {"timeout": through.timeout}
        super().__init__(transport=httpx.MockTransport(_refuse), **timeouts)  # type: ignore[arg-type] # one key, of the right type
        self.through = through

    def __deepcopy__(self, memo: dict[int, Any]) -> PlaceholderClient:
        """The same one: AG2 copies configurations deeply."""
        return self


def _refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.UnsupportedProtocol("a template agent was run; only its copies may", request=request)


def as_llm_config(config: Any) -> Any:
    """A new `LLMConfig` with entries of its own from any form that AG2 takes; the original is left as it is.

    Raises:
        ValueError, TypeError: What AG2 and pydantic say about a configuration that is none.
    """
    from autogen import LLMConfig

    if isinstance(config, LLMConfig):
        return config.copy()
    if isinstance(config, Mapping):
        options = dict(config)
        if "config_list" not in options:
            _refuse_misspelt(options)
            return LLMConfig(options)
        entries = options.pop("config_list")
        return LLMConfig(*_entries(entries), **options)
    return LLMConfig(*_entries(config))


def give_keys(config: Any) -> None:
    """Give the entries of an `LLMConfig` of ours a key where they have none: clients are not made without one.

    Too short to be taken for a secret.
    """
    from pydantic import SecretStr

    for entry in config.config_list:
        if getattr(entry, "api_key", "") is None and entry.api_type not in _WITHOUT_KEYS:
            entry.api_key = SecretStr("none")


def _entries(entries: Any) -> list[Any]:
    listed = list(entries) if isinstance(entries, list | tuple) else [entries]
    for entry in listed:
        _refuse_misspelt(entry)
    return [dict(entry) if isinstance(entry, Mapping) else entry for entry in listed]


def _refuse_misspelt(entry: Any) -> None:
    """AG2 sends a key that it does not know to the model server, so that a missing key or address shows late, or never.

    Raises:
        ValueError: If a key is another one but for its case and its strokes.
    """
    for key in entry if isinstance(entry, Mapping) else ():
        meant = _MISSPELT.get("".join(filter(str.isalnum, str(key).lower())))
        if meant is not None and key != meant:
            raise ValueError(f"the key {key!r} is not known; did you mean {meant!r}?")


def is_routed(entry: Any) -> bool:
    """Whether the entry's calls can be made through the gate."""
    return entry.api_type in ROUTED_API_TYPES and entry.model_client_cls is None


def ignored_client_problem(config: Any) -> str | None:
    """Why an `LLMConfig` cannot be used as it says: an entry's own HTTP client would be ignored by AG2."""
    for entry in config.config_list:
        if entry.http_client is not None and not is_routed(entry) and entry.model_client_cls is None:
            return (
                f'has an http_client for "{entry.api_type}", whose client in AG2 ignores it, so that a proxy or a '
                "certificate in it would be bypassed; leave it out, or use an API type that takes it: "
                + ", ".join(sorted(ROUTED_API_TYPES))
            )
    return None


def route_of(entry: Any) -> Route:
    """What the user said of an entry's way, also where it was routed before."""
    client = entry.http_client
    direct = (entry.model_extra or {}).get(DIRECT) is not False
    if isinstance(client, PlaceholderClient):
        return Route(client.through, price_of(entry), direct)
    return known_route(client) or Route(client, price_of(entry), direct)


def known_route(client: httpx.Client | None) -> Route | None:
    """The route that a client of a gate was made for; None for every other client."""
    if client is None:
        return None
    with _routes_lock:
        return _routes.get(client)


def remember_route(client: httpx.Client, route: Route) -> None:
    """Note what stands behind a client of a gate, so that neither it nor a price of ours is taken for the user's."""
    with _routes_lock:
        _routes[client] = route


def price_of(entry: Any) -> Price | None:
    """The price that an entry names."""
    return named_price(getattr(entry, "price", None))


def without_tools(config: Any) -> Any:
    """A copy that offers the model no tools, as a group's manager must have it."""
    copied = as_llm_config(config)
    copied.tools = []
    copied.functions = []
    return copied

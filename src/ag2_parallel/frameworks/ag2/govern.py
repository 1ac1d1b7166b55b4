"""Routes the model calls of one attempt's agents through its gate.

AG2 1.x makes a model client of an agent's configuration for each `ask`, and sub-agents inherit the
configuration of their parent. So it is the configuration that is governed::

    agent.config ─► governed copy ─► create() ─► client through the gate
                     └─ copy(...), replace(...), copy.copy, copy.deepcopy: governed like it

A copy of one of AG2's configurations is of a subclass of its class; any other object with the methods of a
`ModelConfig` gets one around it. Where a client of ours can be given to a provider's SDK, each of its
requests passes the gate; where not, each call of the model client does, as a whole.

What the user gave is left as it is, and what the copy shows is what the user said: the gate's HTTP client
and the SDK's own retries, switched off, are only in the short-lived copy that a client is made from.
"""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ag2_parallel.frameworks.ag2.foreign_client import ForeignClient
from ag2_parallel.frameworks.named_prices import named_price

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope

Price: TypeAlias = tuple[float, float]
"""US dollars for 1,000 prompt tokens and for 1,000 completion tokens."""

HTTP_CLIENT_FIELDS: Final = {
    "OpenAIConfig": "http_client",
    "OpenAIResponsesConfig": "http_client",
    "OpenAIDecisionsConfig": "http_client",
    "AnthropicConfig": "http_client",
    "MistralConfig": "async_client",
}
"""AG2's configurations whose calls can be sent by an `httpx2.AsyncClient` of ours, and the field that takes it."""

_WAY: Final = "ag2_parallel_way"
"""The field in which a governed configuration keeps its `Way`."""

_SECRETS: Final = ("api_key", "default_headers", "http_headers", "headers", "extra_body")


def governed(config: Any, scope: AttemptScope, *, price: Price | None = None, direct: bool = True) -> Any:
    """A copy of a model configuration whose clients make their calls through the attempt's gate.

    Args:
        config: Any `ag2.config.ModelConfig`; left as it is. One that was governed before is governed anew.
        scope: The attempt.
        price: US dollars for 1,000 prompt tokens and for 1,000 completion tokens; None: the configuration's own
            `price`, where it has one.
        direct: Whether plain chats of OpenAI's protocol may be sent without the SDK.
    """
    scope.redactor.learn({name: value for name in _SECRETS if (value := getattr(config, name, None))})
    way = Way(scope, price or price_of(config), direct=direct)
    if isinstance(config, GovernedConfig):
        return GovernedConfig(config.inner, way)
    kind: Any = type(config)
    if getattr(kind, "__dataclass_fields__", None) is None:
        return GovernedConfig(config, way)
    return _of_class(governed_class(kind), config, way)


def price_of(config: Any) -> Price | None:
    """The price that a configuration names, as one number or as a pair."""
    return named_price(getattr(config, "price", None))


class Way:
    """How one configuration's calls reach the gate; copies of it are itself."""

    def __init__(self, scope: AttemptScope, price: Price | None, *, direct: bool) -> None:
        self.scope = scope
        self.price = price
        self.direct = direct
        self._clients: list[tuple[Any, Any]] = []

    def http_client(self, through: Any) -> Any:
        """The gate's client, or one that sends with the user's `through`."""
        for given, client in self._clients:
            if given is through:
                return client
        client = self.scope.gate.async_http_client(price=self.price, through=through)
        self._clients.append((through, client))
        return client

    def routed(self, config: Any, field: str | None) -> Any:
        """A copy of `config` whose SDK does not retry, and that has the gate's HTTP client in `field`."""
        routed = copy.copy(config)
        if field is not None:
            object.__setattr__(routed, field, self.http_client(getattr(config, field)))
        if hasattr(config, "max_retries"):
            object.__setattr__(routed, "max_retries", 0)
        return routed

    def client(self, client: Any, config: Any, field: str | None) -> Any:
        """A model client that was made of a routed copy of `config`: governed, and with the direct door where it fits."""
        if field is None:
            return ForeignClient(client, config, self.scope, self.price)
        sdk = getattr(client, "_client", None)
        if isinstance(key := getattr(sdk, "api_key", None), str):  # the SDK may have it of the environment
            self.scope.redactor.learn({"api_key": key})
        cls = type(client)
        known = cls.__name__ == "OpenAIClient" and cls.__module__.startswith("ag2.config.openai.")
        if known and self.direct and config.http_client is None:
            from ag2_parallel.frameworks.ag2.direct_door import DirectClient

            # The client is ours, just made, and has no other way in.
            client._client = DirectClient(sdk, self.scope.gate, self.price)  # noqa: SLF001
        return client

    def __copy__(self) -> Way:
        return self

    def __deepcopy__(self, _memo: object) -> Way:
        return self


@cache
def governed_class(cls: Any) -> Any:
    """The subclass of a configuration's class whose instances are governed: a dataclass with one field more."""
    if hasattr(cls, _WAY):
        return cls
    field = next((HTTP_CLIENT_FIELDS[base.__name__] for base in cls.__mro__ if _is_listed(base)), None)
    made = dataclasses.make_dataclass(
        cls.__name__,
        [(_WAY, Any, dataclasses.field(default=None, repr=False, compare=False, kw_only=True))],
        bases=(cls,),
        namespace={
            "create": lambda self: _way(self).client(cls.create(_way(self).routed(self, field)), self, field),
            "create_files_client": lambda self: cls.create_files_client(_way(self).routed(self, field)),
        },
        eq=False,
        repr=False,
        frozen=cls.__dataclass_params__.frozen,
        slots=True,
    )
    made.__module__, made.__qualname__ = cls.__module__, cls.__qualname__
    return made


class GovernedConfig:
    """A governed configuration of a class that is no dataclass: AG2's scripted one, or a user's own.

    Attributes:
        inner: What it is of.
    """

    def __init__(self, inner: Any, way: Way) -> None:
        self.inner = inner
        self._way = way

    @property
    def provider(self) -> Any:
        """The configuration's own."""
        return self.inner.provider

    @property
    def model(self) -> Any:
        """The configuration's own."""
        return self.inner.model

    def copy(self, **changes: Any) -> GovernedConfig:
        """A copy that is governed too."""
        return GovernedConfig(self.inner.copy(**changes), self._way)

    def create(self) -> Any:
        """A model client that makes its calls through the gate."""
        return self._way.client(self.inner.create(), self.inner, None)

    def create_files_client(self) -> Any:
        """The configuration's own."""
        return self.inner.create_files_client()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":  # asked while it is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)


def _is_listed(cls: type) -> bool:
    return cls.__name__ in HTTP_CLIENT_FIELDS and cls.__module__.startswith("ag2.config.")


def _way(config: Any) -> Way:
    way: Way = getattr(config, _WAY)
    return way


def _of_class(cls: Any, config: Any, way: Way) -> Any:
    """A copy of `config` of a subclass of its class."""
    made: Any = object.__new__(cls)
    for name in _slots(cls):
        if hasattr(config, name):
            object.__setattr__(made, name, getattr(config, name))
    for name, value in getattr(config, "__dict__", {}).items():
        object.__setattr__(made, name, value)
    object.__setattr__(made, _WAY, way)
    return made


@cache
def _slots(cls: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for base in cls.__mro__ for name in base.__dict__.get("__slots__", ())))

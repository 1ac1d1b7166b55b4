"""What the SDK makes of its own configuration: requests recorded from it, and answers given back to it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import httpx

if TYPE_CHECKING:
    from typing import Self

    from ag2_parallel.ports import ChatAnswer

CONTROLS: Final = ("extra_headers", "extra_query", "timeout")
"""Parameters of a call that shape the request around its body."""

_MOST_KEPT: Final = 256
"""Forms that are kept; beyond that the oldest is recorded anew when it is needed."""

_NOT_ASKED: Final = frozenset({"_client", "max_retries", "_default_stream_cls", "_platform"})
"""Attributes of an SDK client that no request depends on."""

_ANSWER: Final = (
    b'{"id":"form","object":"chat.completion","created":0,"model":"form","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":""}}]}'
)


class RequestForms:
    """The request that an SDK client makes of a chat, for each configuration once. Safe from any thread."""

    def __init__(self) -> None:
        """Nothing recorded yet."""
        self._lock = threading.Lock()
        self._kept: OrderedDict[Any, httpx.Request | None] = OrderedDict()

    def like(self, sdk: Any, http: httpx.Client, model: Any, controls: Mapping[str, Any]) -> httpx.Request | None:
        """A request of `sdk` to make others like; None where each request has to be its own.

        Args:
            sdk: The SDK client; left as it is.
            http: The client that it would send with, for its headers.
            model: The model asked for: Azure has it in the address.
            controls: The call's own headers, query and timeout.
        """
        known, shaped = configuration(sdk), plain(controls)
        if known is None or shaped is None:
            return None
        key = (known, model, shaped)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        form = _recorded(sdk, http, model, controls)
        with self._lock:
            self._kept[key] = form
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return form


def configuration(sdk: Any) -> tuple[Any, ...] | None:
    """All that a client's requests depend on, as a key; None where there is more to it than values.

    A key that is made anew for each request, a token provider, a subclass: those stay with the SDK.
    """
    from openai import AzureOpenAI, OpenAI

    if type(sdk) not in {OpenAI, AzureOpenAI}:
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


def _recorded(sdk: Any, http: httpx.Client, model: Any, controls: Mapping[str, Any]) -> httpx.Request | None:
    made: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        made.append(request)
        return httpx.Response(200, headers={"content-type": "application/json"}, content=_ANSWER)

    with httpx.Client(transport=httpx.MockTransport(answer), trust_env=False, headers=http.headers) as client:
        try:
            sdk.with_options(http_client=client, max_retries=0).chat.completions.create(
                model=model, messages=[], **controls
            )
        except Exception:  # its next caller hears of it from the SDK
            return None
    return made[0] if len(made) == 1 else None


class Replay(httpx.Client):
    """Answers an SDK's request with what has come already; where that leads elsewhere, the gate's client goes on."""

    def __init__(self, come: ChatAnswer | Exception | None, http: httpx.Client) -> None:
        super().__init__(
            transport=_ReplayTransport(come, http), trust_env=False, follow_redirects=True, headers=http.headers
        )

    def __enter__(self) -> Self:
        return self


class _ReplayTransport(httpx.BaseTransport):
    def __init__(self, come: ChatAnswer | Exception | None, http: httpx.Client) -> None:
        self._come = come
        self._http = http

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        come, self._come = self._come, None
        if come is None:
            return self._http.send(request, follow_redirects=False)
        if isinstance(come, Exception):
            raise come
        return httpx.Response(come.status, headers=come.headers, content=come.body)

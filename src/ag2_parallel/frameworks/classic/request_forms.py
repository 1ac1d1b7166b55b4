"""What the SDK makes of its own configuration: requests recorded from it, and answers given back to it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import httpx

from ag2_parallel.frameworks.request_keys import Configurations, plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from ag2_parallel.ports import ChatAnswer

_MOST_KEPT: Final = 256
"""Forms that are kept; beyond that the oldest is recorded anew when it is needed."""

_ANSWER: Final = (
    b'{"id":"form","object":"chat.completion","created":0,"model":"form","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":""}}]}'
)


class RequestForms:
    """The request that an SDK client makes of a chat, for each configuration once. Safe from any thread."""

    def __init__(self) -> None:
        """Nothing recorded yet."""
        self._lock = threading.Lock()
        self._configurations = Configurations()
        self._kept: OrderedDict[Any, httpx.Request | None] = OrderedDict()

    def like(self, sdk: Any, http: httpx.Client, model: Any, controls: Mapping[str, Any]) -> httpx.Request | None:
        """A request of `sdk` to make others like; None where each request has to be its own.

        Args:
            sdk: The SDK client; left as it is.
            http: The client that it would send with, for its headers.
            model: The model asked for: Azure has it in the address.
            controls: The call's own headers, query and timeout.
        """
        known, shaped = self._configurations.of(sdk), plain(controls)
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

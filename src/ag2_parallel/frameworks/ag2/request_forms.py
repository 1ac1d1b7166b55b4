"""What the async OpenAI SDK makes of a configuration: requests recorded from it, and answers given back to it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Final

import httpx2

from ag2_parallel.frameworks.request_keys import configuration

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
        self._kept: OrderedDict[Any, httpx2.Request | None] = OrderedDict()

    async def like(self, sdk: Any, model: str) -> httpx2.Request | None:
        """A request of `sdk` to make others like; None where each request has to be its own.

        Args:
            sdk: The SDK client, with the HTTP client that it would send with; left as it is.
            model: The model asked for: Azure has it in the address.
        """
        known = configuration(sdk)
        if known is None:
            return None
        key = (known, model)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        form = await _recorded(sdk, model)
        with self._lock:
            self._kept[key] = form
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return form


async def _recorded(sdk: Any, model: str) -> httpx2.Request | None:
    made: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        made.append(request)
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=_ANSWER)

    headers = sdk._client.headers  # noqa: SLF001 - the only way to the HTTP client that it was given
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), trust_env=False, headers=headers) as http:
        try:
            await sdk.with_options(http_client=http, max_retries=0).chat.completions.create(model=model, messages=[])
        except Exception:  # its next caller hears of it from the SDK
            return None
    return made[0] if len(made) == 1 else None


class Replay(httpx2.AsyncClient):
    """Answers an SDK's request with what has come already; where that leads elsewhere, the gate's client goes on."""

    def __init__(self, come: httpx2.Response | Exception, http: httpx2.AsyncClient) -> None:
        super().__init__(
            transport=_ReplayTransport(come, http), trust_env=False, follow_redirects=True, headers=http.headers
        )


class _ReplayTransport(httpx2.AsyncBaseTransport):
    def __init__(self, come: httpx2.Response | Exception, http: httpx2.AsyncClient) -> None:
        self._come: httpx2.Response | Exception | None = come
        self._http = http

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        come, self._come = self._come, None
        if come is None:
            return await self._http.send(request, stream=True, follow_redirects=False)
        if isinstance(come, Exception):
            raise come
        return come

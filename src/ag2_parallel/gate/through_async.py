"""Sending with a user's own httpx2 client, on one loop that is kept for such clients.

An async client belongs to the loop it was first used on, and attempts have a loop each. So all requests of
users' clients run on a loop of their own, in a daemon thread of the process, which lasts as long as the
process: a client may serve one run after another. A cut cancels the request there.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx
import httpx2

from ag2_parallel.event_loops import own_event_loop
from ag2_parallel.gate.wire import HeaderList, Reply, decoded_headers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from ag2_parallel.gate.request import ModelRequest

T = TypeVar("T")

_END: Final = b""


_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""The loop of users' clients, by process: a forked child has one of its own."""


def clients_loop() -> asyncio.AbstractEventLoop:
    """The loop that users' clients are used on, running."""
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = own_event_loop()
            threading.Thread(target=loop.run_forever, name="httpx2 clients of tasks", daemon=True).start()
        return loop


class ThroughAsyncClient:
    """Sends requests with `client`."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._loop = clients_loop()

    async def send(self, request: ModelRequest, body: bytes) -> Reply:
        """Send `request`; the answer's head. Raises what httpx raises where the client raises it."""
        assert isinstance(request.original, httpx2.Request), "only the HTTP door sends with a user's client"
        made = _copy(request.original, body)
        response = await _on(self._loop, self._client.send(made, stream=True))
        return _ThroughReply(response, self._loop)


def _copy(request: httpx2.Request, body: bytes) -> httpx2.Request:
    """A request of its own for each try: the client's hooks and authentication may write on it."""
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx2.Request(
        request.method, request.url, headers=headers, content=body, extensions=dict(request.extensions)
    )


class _ThroughReply:
    """An answer from a user's client."""

    def __init__(self, response: httpx2.Response, loop: asyncio.AbstractEventLoop) -> None:
        self._response = response
        self._loop = loop
        self._chunks: AsyncIterator[bytes] = response.aiter_bytes()
        self.status = response.status_code
        self.headers: HeaderList = decoded_headers(response.headers.multi_items())

    async def read(self) -> bytes:
        return await _on(self._loop, self._response.aread())

    async def next_chunk(self) -> bytes:
        return await _on(self._loop, self._next())

    async def _next(self) -> bytes:
        return await anext(self._chunks, _END)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._response.aclose(), self._loop)


async def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Await `work` on another loop; a cancellation is passed on to it."""
    try:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
    except httpx2.HTTPError as error:
        raise _as_httpx(error) from error


def _as_httpx(error: httpx2.HTTPError) -> httpx.HTTPError:
    """What httpx raises where httpx2 raised `error`: the gate reads one family of exceptions."""
    for kind in type(error).__mro__:
        same = getattr(httpx, kind.__name__, None) if kind.__module__.startswith("httpx2") else None
        if same is not None:
            made: httpx.HTTPError = same(str(error))
            return made
    return httpx.TransportError(str(error))

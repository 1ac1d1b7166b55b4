"""Sending with a user's own httpx client, on a daemon thread, while the worker waits at the gate as ever.

The user may have chosen it for a proxy, a certificate or logging, so everything about it counts:
its connections, its authentication, its hooks. A cut ends the waiting; the thread comes back when
the client does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import httpx

from ag2_parallel.gate.off_loop import off_loop
from ag2_parallel.gate.wire import HeaderList, Reply, decoded_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.request import ModelRequest

_END: Final = b""


class ThroughClient:
    """Sends requests with `client`."""

    def __init__(self, client: httpx.Client, spawn: Callable[[Callable[[], None]], None]) -> None:
        """`spawn` runs a blocking function on a daemon thread."""
        self._client = client
        self._spawn = spawn

    async def send(self, request: ModelRequest, body: bytes) -> Reply:
        """Send `request`; the answer's head. Raises what the client raises."""
        assert isinstance(request.original, httpx.Request), "only the HTTP door sends with a user's client"
        made = _copy(request.original, body)
        response = await off_loop(
            self._spawn, lambda: self._client.send(made, stream=True), late=lambda late: late.close() if late else None
        )
        return _ThroughReply(response, self._spawn)


def _copy(request: httpx.Request, body: bytes) -> httpx.Request:
    """A request of its own for each try: the client's hooks and authentication may write on it."""
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx.Request(
        request.method, request.url, headers=headers, content=body, extensions=dict(request.extensions)
    )


class _ThroughReply:
    """An answer from a user's client."""

    def __init__(self, response: httpx.Response, spawn: Callable[[Callable[[], None]], None]) -> None:
        self._response = response
        self._spawn = spawn
        self._chunks = response.iter_bytes()
        self._left_reading = False
        self.status = response.status_code
        self.headers: HeaderList = decoded_headers(response.headers.multi_items())

    async def read(self) -> bytes:
        return await self._reading(self._response.read)

    async def next_chunk(self) -> bytes:
        return await self._reading(lambda: next(self._chunks, _END))

    def close(self) -> None:
        if not self._left_reading:  # else the thread that reads closes it when it comes back
            self._spawn(self._response.close)

    async def _reading(self, work: Callable[[], bytes]) -> bytes:
        try:
            return await off_loop(self._spawn, work, late=lambda _late: self._response.close())
        except asyncio.CancelledError:
            self._left_reading = True
            raise

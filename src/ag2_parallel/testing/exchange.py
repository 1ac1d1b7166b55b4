"""One request and its answer over the wire. Loaded only when a server starts, for it needs aiohttp."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Any

from aiohttp import web

from ag2_parallel.testing import protocol
from ag2_parallel.testing.replies import ChatRequest, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ag2_parallel.testing.faults import Fault
    from ag2_parallel.testing.ledger import Entry

JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}


class Exchange:
    """Sends one answer, and notes in the ledger how that ended just before the last bytes go out."""

    def __init__(self, http: web.BaseRequest, request: ChatRequest, entry: Entry, *, model: str) -> None:
        """Made for one request; `model` is the name where nothing else says one."""
        self._http = http
        self._request = request
        self._entry = entry
        self._model = model

    async def reply(self, reply: Reply, *, latency: float, usage: bool) -> web.StreamResponse:
        """Send a whole answer, `latency` seconds from now."""
        body = protocol.completion_body(reply, self._request, model=self._model, usage=usage)
        return await self.raw(body, latency=latency, headers=reply.headers, chunk_delay=reply.chunk_delay)

    async def raw(
        self,
        body: Mapping[str, Any],
        *,
        latency: float,
        headers: Mapping[str, str] | None = None,
        chunk_delay: float = 0.0,
    ) -> web.StreamResponse:
        """Send the body of a completion, as JSON or as events, as the client asked."""
        await asyncio.sleep(latency)
        used = protocol.usage_of(body)
        if not self._request.stream:
            pieces = [protocol.encoded(body)]
            return await self._pieces(pieces, {**JSON, **(headers or {})}, usage=used)
        pieces = self._events(body)
        if not chunk_delay:
            pieces = [b"".join(pieces)]
        used = used if self._request.wants_usage else None
        return await self._pieces(pieces, {**SSE, **(headers or {})}, delay=chunk_delay, usage=used)

    async def fault(self, fault: Fault, *, error: str | None = None) -> web.StreamResponse:
        """Send a fault."""
        match fault.kind:
            case "status":
                return await self._broken(protocol.encoded(protocol.error_body(fault)), fault, JSON, error)
            case "garbage":
                return await self._broken(fault.body.encode(), fault, {}, error)
            case "reset":
                return self._reset()
            case "hang":
                await _sleep_or_for_ever(fault.seconds)
                return self._reset()
            case "trickle":
                return await self._trickle(fault)
            case "half_stream":
                return await self._half_stream(fault)

    async def _trickle(self, fault: Fault) -> web.StreamResponse:
        if fault.text is None:
            return await self._trickle_for_ever(fault.delay)
        body = protocol.completion_body(Reply(fault.text), self._request, model=self._model, usage=False)
        if self._request.stream:
            return await self._pieces(self._events(body), SSE, delay=fault.delay)
        whole = protocol.encoded(body)
        size = -(-len(whole) // (len(protocol.words(fault.text)) + 1))
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        return await self._pieces(pieces, JSON, delay=fault.delay)

    async def _trickle_for_ever(self, delay: float) -> web.StreamResponse:
        piece = b" "  # white space before a JSON value is still JSON
        response = web.StreamResponse(headers=JSON)
        if self._request.stream:
            response = web.StreamResponse(headers=SSE)
            body = protocol.completion_body(Reply("and so on "), self._request, model=self._model, usage=False)
            piece = self._events(body)[1]
        await response.prepare(self._http)
        while True:
            await response.write(piece)
            await asyncio.sleep(delay)

    async def _half_stream(self, fault: Fault) -> web.StreamResponse:
        body = protocol.completion_body(Reply(fault.text or ""), self._request, model=self._model, usage=False)
        if self._request.stream:
            events = self._events(body)
            half, response = b"".join(events[: len(events) // 2]), web.StreamResponse(headers=SSE)
        else:
            whole = protocol.encoded(body)
            half, response = whole[: len(whole) // 2], web.StreamResponse(headers=JSON)
            response.content_length = len(whole)
        await response.prepare(self._http)
        await response.write(half)
        self._entry.fault(200)
        transport = self._http.transport
        if transport is not None:
            transport.close()  # what was written is still sent, then the connection ends without the rest
        return response

    def _events(self, body: Mapping[str, Any]) -> list[bytes]:
        *chunks, last = protocol.events(body, usage=self._request.wants_usage)
        # A usage block is the last event. It goes out with the end marker, so that no answer is cut between the two.
        return [*chunks, last + protocol.DONE]

    async def _pieces(
        self,
        pieces: Sequence[bytes],
        headers: Mapping[str, str],
        *,
        delay: float = 0.0,
        usage: tuple[int, int] | None = None,
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        if len(pieces) == 1:
            response.content_length = len(pieces[0])
        await response.prepare(self._http)
        for piece in pieces[:-1]:
            await response.write(piece)
            await asyncio.sleep(delay)
        self._entry.answered(200, usage)
        await response.write_eof(pieces[-1])
        return response

    async def _broken(
        self, body: bytes, fault: Fault, headers: Mapping[str, str], error: str | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=fault.http_status or 200, headers={**headers, **fault.headers})
        response.content_length = len(body)
        await response.prepare(self._http)
        self._entry.fault(fault.http_status, error)
        await response.write_eof(body)
        return response

    def _reset(self) -> web.StreamResponse:
        self._entry.fault(None)
        transport = self._http.transport
        if transport is not None:
            # Lingering for no time makes the system send a reset in place of an orderly end.
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        return web.Response()


async def _sleep_or_for_ever(seconds: float | None) -> None:
    if seconds is None:
        await asyncio.Event().wait()
    else:
        await asyncio.sleep(seconds)

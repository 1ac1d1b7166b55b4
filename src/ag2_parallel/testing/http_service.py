"""The model server's side of HTTP. Loaded only when a server starts, for it needs aiohttp."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import web

from ag2_parallel.redaction import SECRET_NAMES
from ag2_parallel.testing import protocol
from ag2_parallel.testing.exchange import JSON, Exchange
from ag2_parallel.testing.faults import Fault
from ag2_parallel.testing.replies import Answer, ChatRequest, Reply, ReplyFunction, Script, checked_answer

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

    from ag2_parallel.testing.ledger import Entry
    from ag2_parallel.testing.model_server import ModelServer

_BACKLOG = 4096
"""Connections the system may hold for us before we accept them: a thousand clients come at once."""


class HttpService(web.Server):
    """Counts connections and hands each request to the right place."""

    def __init__(self, server: ModelServer) -> None:
        """Serve for `server`; made inside the running loop."""
        super().__init__(self._handle, handler_cancellation=True, access_log=None)
        self._server = server
        self._open: dict[RequestHandler, asyncio.Transport] = {}
        self._closing = False

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Listen on `host`; port 0 means any that is free."""
        return await asyncio.get_running_loop().create_server(self, host, port, backlog=_BACKLOG)

    async def close(self) -> None:
        """End every connection and every request at once."""
        self._closing = True
        for transport in list(self._open.values()):
            transport.abort()
        await self.shutdown(0.1)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection."""
        super().connection_made(handler, transport)
        self._open[handler] = transport
        self._server.ledger.connection_opened()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Count it out."""
        super().connection_lost(handler, exc)
        if self._open.pop(handler, None) is not None:
            self._server.ledger.connection_closed()

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        if http.method == "POST" and http.path.endswith("/chat/completions"):
            return await self._chat(http)
        match http.method, http.path:
            case "GET", "/v1/models":
                return _json(protocol.models_body(self._server.models))
            case "GET", "/ledger":
                return _json(self._server.ledger.summary())
            case "POST", "/ledger/reset":
                self._server.ledger.reset()
                return _json({})
            case _:
                pass
        fault = Fault.status(404, message=f"there is no {http.method} {http.path} here", code="not_found")
        return _json(protocol.error_body(fault), status=404)

    async def _chat(self, http: web.BaseRequest) -> web.StreamResponse:
        body = _parsed(await http.content.read())
        draft = ChatRequest(body or {})
        entry = self._server.ledger.begin(draft.body, model=draft.model, text=draft.last_text)
        headers = {name.lower(): value for name, value in http.headers.items() if not SECRET_NAMES.search(name)}
        request = ChatRequest(draft.body, entry.number, http.path, headers)
        exchange = Exchange(http, request, entry, model=self._server.models[0])
        try:
            if body is None:
                return await exchange.fault(Fault.status(400, message="the body is not a JSON object"))
            return await self._answer(exchange, request)
        except asyncio.CancelledError:
            self._ended_early(entry)
            raise
        except ConnectionError:  # the client went away while the answer was on its way: nobody reads what is returned
            self._ended_early(entry)
            return web.Response()

    def _ended_early(self, entry: Entry) -> None:
        if self._closing:
            entry.fault(None)
        else:
            entry.cut()

    async def _answer(self, exchange: Exchange, request: ChatRequest) -> web.StreamResponse:
        server = self._server
        fault = server.take_fault()
        if fault is not None:
            return await exchange.fault(fault)
        if not server.accepts_stream_options and "stream_options" in request.body:
            message = "Unrecognized request argument supplied: stream_options"
            return await exchange.fault(Fault.status(400, message=message))
        latency = server.latency
        try:
            answer = await _next_answer(server.script, request)
        except Exception as error:
            message = f"the reply function raised {type(error).__name__}: {error}"
            told = Fault.status(500, message=message, code="reply_function", headers={"x-should-retry": "false"})
            return await exchange.fault(told, error=message)
        if isinstance(answer, Fault):
            return await exchange.fault(answer)
        if isinstance(answer, Mapping):
            return await exchange.raw(answer, latency=latency)
        reply = Reply(answer) if isinstance(answer, str) else answer
        latency = latency if reply.latency is None else reply.latency
        return await exchange.reply(reply, latency=latency, usage=server.include_usage)


async def _next_answer(script: Script, request: ChatRequest) -> Answer:
    if script.function is None:
        return script.take()
    made = await _on_a_thread(script.function, request) if script.may_block else script.function(request)
    return checked_answer(await made if inspect.isawaitable(made) else made)


async def _on_a_thread(function: ReplyFunction, request: ChatRequest) -> Any:
    """Call the user's function on a daemon thread of its own: it may block, and nobody waits for it at exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def deliver(outcome: tuple[Any, BaseException | None]) -> None:
        if not done.done():
            done.set_result(outcome)

    def call() -> None:
        try:
            outcome: tuple[Any, BaseException | None] = (function(request), None)
        except BaseException as error:
            outcome = (None, error)
        with suppress(RuntimeError):  # the server was closed meanwhile
            loop.call_soon_threadsafe(deliver, outcome)

    threading.Thread(target=call, name=f"model-server-reply-{request.number}", daemon=True).start()
    value, error = await done
    if error is None:
        return value
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        raise error
    raise RuntimeError(repr(error)) from error  # what no coroutine may raise


def _parsed(payload: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(payload)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _json(body: Mapping[str, Any], *, status: int = 200) -> web.Response:
    return web.Response(body=protocol.encoded(body), status=status, headers=JSON)

"""A cassette at the wire: a `Sender` that records what another one sends, and one that answers from a recording."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any, Final

import httpx

from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.cassette_file import Exchange
from ag2_parallel.gate.digest import Inquiry
from ag2_parallel.gate.failure import broken
from ag2_parallel.gate.off_loop import off_loop
from ag2_parallel.redaction import SECRET_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.attempt_side import AttemptSide
    from ag2_parallel.gate.cassette import Playing, Recording
    from ag2_parallel.gate.request import ModelRequest
    from ag2_parallel.gate.wire import HeaderList, Reply, Sender

_COOKIES: Final = frozenset({"set-cookie", "set-cookie2"})
_COMPLETE: Final = re.compile(rb"(?m)^data:\s*\[DONE\]|^event:\s*(?:response\.completed|message_stop)\b")
"""What a stream says when it is complete; its last bytes may be left unread."""


class RecordingSender:
    """Sends with another sender and writes down what comes of it."""

    def __init__(self, inner: Sender, recording: Recording, task: str) -> None:
        self._inner = inner
        self._recording = recording
        self._task = task

    async def send(self, request: ModelRequest, body: bytes) -> Reply:
        """See `wire.Sender`."""
        assert isinstance(request.asked, Inquiry)
        exchange = Exchange(task=self._task, digest=request.asked.digest, asked=request.asked.content)
        began = time.monotonic()
        try:
            reply = await self._inner.send(request, body)
        except httpx.HTTPError as error:
            exchange.head_at = time.monotonic() - began
            exchange.error = _described(error)
            self._recording.put(exchange)
            raise
        exchange.head_at = time.monotonic() - began
        exchange.status = reply.status
        exchange.headers = [
            (name, value)
            for name, value in reply.headers
            if name.lower() not in _COOKIES and not SECRET_NAMES.search(name)
        ]
        return _RecordedReply(reply, exchange, self._recording, began)


class _RecordedReply:
    """An answer that is written down when it has come to its end."""

    def __init__(self, reply: Reply, exchange: Exchange, recording: Recording, began: float) -> None:
        self.status = reply.status
        self.headers: HeaderList = reply.headers
        self._reply = reply
        self._exchange: Exchange | None = exchange
        self._recording = recording
        self._began = began
        self._chunks: list[tuple[float, bytes]] = []

    async def read(self) -> bytes:
        parts = []
        while part := await self.next_chunk():
            parts.append(part)
        return b"".join(parts)

    async def next_chunk(self) -> bytes:
        try:
            chunk = await self._reply.next_chunk()
        except httpx.HTTPError as error:
            self._write(_described(error))
            raise
        if chunk:
            self._chunks.append((time.monotonic() - self._began, chunk))
        else:
            self._write()
        return chunk

    def close(self) -> None:
        if self._chunks and _COMPLETE.search(b"".join(chunk for _, chunk in self._chunks[-2:])):
            self._write()
        self._reply.close()

    def _write(self, error: dict[str, Any] | None = None) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.chunks = self._chunks
        exchange.error = error
        self._recording.put(exchange)


def _described(error: httpx.HTTPError) -> dict[str, Any]:
    public = next(cls for cls in type(error).__mro__ if getattr(httpx, cls.__name__, None) is cls)
    transient = broken(error).outcome.transient
    return {"type": public.__name__, "message": str(error), "transient": transient}


class PlayingSender:
    """Answers an attempt's requests from a cassette."""

    def __init__(self, playing: Playing, side: AttemptSide, spawn: Callable[[Callable[[], None]], None]) -> None:
        self._playing = playing
        self._side = side
        self._spawn = spawn

    async def send(self, request: ModelRequest, body: bytes) -> Reply:  # noqa: ARG002 - it goes nowhere
        """See `wire.Sender`."""
        asked = request.asked
        assert isinstance(asked, Inquiry)
        exchange = self._playing.take(self._side.task, asked.digest)
        if exchange is None:
            error = await off_loop(self._spawn, lambda: self._playing.missed(self._side.task, asked))
            self._side.owner.fail(error)
            raise TaskStopped from error
        reply = _PlayedReply(exchange, self._playing)
        await reply.until(exchange.head_at)
        if not exchange.status:
            raise _raised(exchange.error)
        return reply


class _PlayedReply:
    """A recorded answer, as fast as it is wanted."""

    def __init__(self, exchange: Exchange, playing: Playing) -> None:
        self.status = exchange.status
        self.headers: HeaderList = exchange.headers
        self._exchange = exchange
        self._chunks = iter(exchange.chunks)
        self._playing = playing
        self._began = time.monotonic()

    async def until(self, at: float) -> None:
        """Wait for a moment of the recording."""
        await asyncio.sleep(max(0.0, self._began + self._playing.scaled(at) - time.monotonic()))

    async def read(self) -> bytes:
        parts = []
        while part := await self.next_chunk():
            parts.append(part)
        return b"".join(parts)

    async def next_chunk(self) -> bytes:
        at, chunk = next(self._chunks, (0.0, b""))
        if chunk:
            await self.until(at)
        elif self._exchange.error is not None:
            raise _raised(self._exchange.error)
        return chunk

    def close(self) -> None:
        """Nothing is open."""


def _raised(error: dict[str, Any] | None) -> httpx.HTTPError:
    assert error is not None, "an exchange without an answer has an error"
    # What cannot go away is not tried again: in a recording it came once.
    cls = getattr(httpx, error["type"]) if error["transient"] else httpx.LocalProtocolError
    made: httpx.HTTPError = cls(error["message"])
    return made

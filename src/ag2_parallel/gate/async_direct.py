"""The direct door for coroutines: a chat's bytes go straight to the engine loop, and its answer is awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import httpx
import httpx2

from ag2_parallel.gate.async_call import begun
from ag2_parallel.gate.httpx2_client import AsyncAnswerStream, as_httpx2
from ag2_parallel.gate.request import ModelRequest

if TYPE_CHECKING:
    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.terms import Terms

_READ: Final = "ag2_parallel.read"


class AsyncChatSender:
    """Sends chats that differ in their bodies alone; see `async_ports.AsyncAttemptGate.async_chat_sender`."""

    def __init__(self, attempt: GatedAttempt, like: httpx2.Request, terms: Terms) -> None:
        self._attempt = attempt
        self._like = like
        self._terms = terms

    async def __call__(
        self, body: bytes, model: str | None, *, streamed: bool = False, takes_usage: bool = False
    ) -> httpx2.Response:
        """Send a body; see `async_ports.SendChatSoon`."""
        request = _read_once(self._like).with_chat(body, model, streamed=streamed, takes_usage=takes_usage)
        try:
            head, answer = await begun(self._attempt, request, self._terms)
        except httpx.HTTPError as error:
            raise as_httpx2(error, self._like) from error
        if head.body is not None:
            return httpx2.Response(head.status, headers=head.headers, content=head.body)
        asked = httpx2.Request(self._like.method, self._like.url, headers=self._like.headers, content=body)
        parts = AsyncAnswerStream(answer, asked)
        response = httpx2.Response(head.status, headers=head.headers, stream=parts, request=asked)
        if not streamed:  # a server that streams unasked
            await response.aread()
        return response


def _read_once(like: httpx2.Request) -> ModelRequest:
    """What the request asks, kept with it: the same one serves every attempt."""
    read = like.extensions.get(_READ)
    if read is None:
        read = like.extensions[_READ] = ModelRequest.read(like)
    return cast("ModelRequest", read)

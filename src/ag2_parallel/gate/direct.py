"""The direct door: a chat's bytes go straight to the engine loop, and its answer's bytes come back."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final, cast

from ag2_parallel.gate.request import ModelRequest
from ag2_parallel.gate.sync_client import AnswerStream, begun
from ag2_parallel.ports import ChatAnswer

if TYPE_CHECKING:
    import httpx

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.terms import Terms

_READ: Final = "ag2_parallel.read"


class ChatSender:
    """Sends chats that differ in their bodies alone; see `ports.AttemptGate.chat_sender`."""

    def __init__(self, attempt: GatedAttempt, like: httpx.Request, terms: Terms) -> None:
        self._attempt = attempt
        self._like = _read_once(like)
        self._terms = terms

    def __call__(self, body: bytes, model: str | None) -> ChatAnswer:
        """Send a body and wait for the answer."""
        call, head = begun(self._attempt, self._like.with_chat(body, model), self._terms)
        if head.body is not None:
            return ChatAnswer(head.status, head.headers, head.body)
        with closing(AnswerStream(self._attempt, call)) as parts:  # a server that streams unasked
            return ChatAnswer(head.status, head.headers, b"".join(parts))


def _read_once(like: httpx.Request) -> ModelRequest:
    """What the request asks, kept with it: the same one serves every attempt."""
    read = like.extensions.get(_READ)
    if read is None:
        read = like.extensions[_READ] = ModelRequest.read(like)
    return cast("ModelRequest", read)

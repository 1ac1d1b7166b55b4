"""What the gate asks of whatever sends a request: its own pool, or a user's client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ag2_parallel.gate.request import ModelRequest

HeaderList: TypeAlias = "list[tuple[str, str]]"

_ABOUT_THE_BYTES = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Head:
    """An answer on its way to the worker; where `body` is None the bytes follow one by one."""

    status: int
    headers: HeaderList
    body: bytes | None

    def by_name(self) -> dict[str, str]:
        """The headers by their names in lower case."""
        return {key.lower(): value for key, value in self.headers}


class Reply(Protocol):
    """An answer whose head has arrived. Its methods raise httpx exceptions."""

    status: int
    headers: HeaderList

    async def read(self) -> bytes:
        """The whole body, decoded."""

    async def next_chunk(self) -> bytes:
        """The next bytes of the body, decoded, as soon as they arrive; empty at the end."""

    def close(self) -> None:
        """Done with it. What was not read to its end is broken off, so that the server notices."""


class Sender(Protocol):
    """Sends requests."""

    async def send(self, request: ModelRequest, body: bytes) -> Reply:
        """Send `request` with `body`; cancelling it breaks the connection. Raises httpx exceptions."""


def decoded_headers(headers: Iterable[tuple[str, str]]) -> HeaderList:
    """The headers that are true of a decoded body."""
    return [(name, value) for name, value in headers if name.lower() not in _ABOUT_THE_BYTES]


async def whole(reply: Reply, alive: Callable[[], None]) -> bytes:
    """The body of an answer that is not streamed; each part of it is a sign of life."""
    parts = []
    while part := await reply.next_chunk():
        alive()
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def is_event_stream(reply: Reply) -> bool:
    """Whether an answer is a stream, whatever was asked for."""
    return any(name.lower() == "content-type" and "text/event-stream" in value for name, value in reply.headers)

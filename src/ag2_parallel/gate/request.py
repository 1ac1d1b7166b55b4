"""A request to a model server, read once: what it asks, and the bytes to send."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.gate.hedging import may_be_sent_twice
from ag2_parallel.gate.meter import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx
    import httpx2

    from ag2_parallel.gate.digest import Inquiry

_CHAT: Final = ("/chat/completions", "/completions", "/responses", "/messages")
"""Ends of paths whose answers are JSON objects, and cost money."""

_CONNECTION_HEADERS: Final = frozenset({
    b"connection", b"content-length", b"host", b"keep-alive", b"proxy-connection", b"transfer-encoding",
})  # fmt: skip
"""Headers that are about one connection, which the pool writes itself."""


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One request as the gate sends it.

    Attributes:
        method: The HTTP method.
        url: The address, without user information.
        headers: Names and values; those about the connection left out.
        body: The body, the same in each try.
        timeout: Seconds for `connect` and `read`; None: no limit.
        endpoint: `scheme://host:port` for a reader: no path, no user information.
        model: The model asked for, where the body names one.
        chat: Whether the answer must be a JSON object or a stream of them.
        streamed: Whether the body asks for a stream.
        takes_usage: Whether asking for the usage of this stream is up to the gate.
        original: What it was read from, for a user's own client; None where no such client can be meant.
        asked: What it asks, where the run has a cassette.
    """

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: bytes
    timeout: Mapping[str, float | None]
    endpoint: str
    model: str | None = None
    chat: bool = False
    streamed: bool = False
    takes_usage: bool = False
    original: httpx.Request | httpx2.Request | None = field(default=None, repr=False)
    asked: Inquiry | None = None

    @classmethod
    def read(cls, request: httpx.Request | httpx2.Request) -> ModelRequest:
        """Read what an SDK is about to send."""
        body = request.read()
        url = request.url
        endpoint = f"{url.scheme}://{url.netloc.decode('ascii')}"
        asked = _parsed(body, request.headers.get("content-type", "")) if request.method == "POST" else {}
        chat = bool(asked) and url.path.endswith(_CHAT)
        streamed = asked.get("stream") is True
        model = asked.get("model")
        return cls(
            method=request.method,
            url=endpoint + url.raw_path.decode("ascii"),
            headers=[
                (name.decode("ascii"), value.decode("utf-8", "surrogateescape"))
                for name, value in request.headers.raw
                if name.lower() not in _CONNECTION_HEADERS
            ],
            body=body,
            timeout=request.extensions.get("timeout", {}),
            endpoint=endpoint,
            model=model if isinstance(model, str) else None,
            chat=chat,
            streamed=streamed,
            takes_usage=streamed and url.path.endswith("/chat/completions") and "stream_options" not in asked,
            original=request,
        )

    def with_chat(
        self, body: bytes, model: str | None, *, streamed: bool = False, takes_usage: bool = False
    ) -> ModelRequest:
        """A chat like this one with a body of its own."""
        return ModelRequest(
            method=self.method,
            url=self.url,
            headers=self.headers,
            body=body,
            timeout=self.timeout,
            endpoint=self.endpoint,
            model=model,
            chat=True,
            streamed=streamed,
            takes_usage=takes_usage,
        )

    @property
    def metered(self) -> bool:
        """Whether it is a call of a model, and not, say, a list of models."""
        return self.method == "POST"

    def body_with_usage(self) -> bytes:
        """The body, asking for the usage of its stream; everything else byte for byte as it was."""
        return self.body.rstrip()[:-1] + b',"stream_options":{"include_usage":true}}'

    def estimated_tokens(self) -> int:
        """A guess at the tokens it sends, by the length of its texts."""
        return sum(len(text) for text in _texts(self._asked())) // BYTES_PER_TOKEN

    def answer_cap(self) -> int | None:
        """The most tokens the answer may have, where the body says."""
        asked = self._asked()
        cap = asked.get("max_completion_tokens") or asked.get("max_tokens")
        return cap if isinstance(cap, int) and cap > 0 else None

    def repeatable(self) -> bool:
        """Whether a second copy beside the first leaves nothing behind on the server."""
        return self.chat and may_be_sent_twice(self.url.partition("?")[0], self._asked())

    def _asked(self) -> dict[str, Any]:
        return _parsed(self.body, dict(self.headers).get("content-type", "application/json"))


def _parsed(body: bytes, content_type: str) -> dict[str, Any]:
    if "json" not in content_type:
        return {}
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if not value.startswith("data:"):  # an image is not counted by its letters
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)

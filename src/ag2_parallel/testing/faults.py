"""What can go wrong between a client and a model server, on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

FaultKind: TypeAlias = Literal["status", "reset", "hang", "garbage", "trickle", "half_stream"]

_TYPES = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}
"""Error type and code that go with a status, as OpenAI sends them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A bad answer. Made by one of its functions, such as `Fault.status(429, retry_after=1)`.

    A fault comes at once; the server's `latency` is that of good answers.
    """

    kind: FaultKind
    http_status: int | None = 200
    message: str = ""
    type: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    text: str | None = None
    delay: float = 0.0
    seconds: float | None = None

    @staticmethod
    def status(
        http_status: int,
        /,
        *,
        message: str | None = None,
        code: str | None = None,
        type: str | None = None,  # noqa: A002 - the field's name in the protocol
        headers: Mapping[str, str] | None = None,
        retry_after: str | float | None = None,
    ) -> Fault:
        """An HTTP error with the protocol's error body.

        Args:
            http_status: The status, such as 429.
            message: The body's message; made from the status by default.
            code: The body's error code, such as `"insufficient_quota"`.
            type: The body's error type.
            headers: More HTTP headers.
            retry_after: Value of the `Retry-After` header, sent as it is.
        """
        usual_type, usual_code = _TYPES.get(http_status, ("server_error", None))
        more = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return Fault(
            kind="status",
            http_status=http_status,
            message=message if message is not None else f"scripted error {http_status}",
            type=type or usual_type,
            code=code or usual_code,
            headers=dict(headers or {}) | more,
        )

    @staticmethod
    def reset() -> Fault:
        """The connection is reset without an answer."""
        return Fault(kind="reset", http_status=None)

    @staticmethod
    def hang(seconds: float | None = None) -> Fault:
        """Not even headers are sent until the client goes away, or for `seconds`; then the connection is reset."""
        return Fault(kind="hang", http_status=None, seconds=seconds)

    @staticmethod
    def garbage(body: str = "not json", content_type: str = "application/json") -> Fault:
        """Status 200 with a body that no client expects."""
        return Fault(kind="garbage", body=body, headers={"Content-Type": content_type})

    @staticmethod
    def trickle(delay: float = 0.1, text: str | None = None) -> Fault:
        """An answer that comes slowly, a piece every `delay` seconds.

        Args:
            delay: Seconds between the pieces.
            text: What the answer says: it becomes whole after about a piece for each word, and counts as answered.
                None: it never ends, and only a client that goes away ends it.
        """
        return Fault(kind="trickle", delay=delay, text=text)

    @staticmethod
    def half_stream(text: str = "this answer breaks off in the middle and is never whole") -> Fault:
        """An answer that breaks off: half of its events, or of its JSON body, then the connection is closed."""
        return Fault(kind="half_stream", text=text)

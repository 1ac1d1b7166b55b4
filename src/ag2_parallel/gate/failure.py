"""One failed try: what it means for the next one, and what the worker gets if there is none."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import aiohttp
import httpx

from ag2_parallel.gate.error_body import with_reason
from ag2_parallel.gate.proxies import UnusableProxyError
from ag2_parallel.gate.retry import Outcome, answered
from ag2_parallel.gate.wire import Head
from ag2_parallel.results import TaskError
from ag2_parallel.retry_after import retry_after

if TYPE_CHECKING:
    from datetime import datetime

    from ag2_parallel.redaction import Redactor

_SHOWN: Final = 200
"""Characters of an unusable answer that its error shows."""

_NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.LocalProtocolError,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)

_HOPELESS: Final = (
    httpx.LocalProtocolError,
    httpx.UnsupportedProtocol,
    httpx.TooManyRedirects,
    UnusableProxyError,
)


class UnusableAnswerError(httpx.DecodingError):
    """Raised when a model server answers 200 with something that is no answer, each time it is asked."""

    kind = "invalid_answer"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a try failed: with an error answer (`head`), or without one (`error`)."""

    outcome: Outcome
    head: Head | None = None
    error: Exception | None = None

    def final_head(self, reason: str | None) -> Head | None:
        """The error answer as the SDK gets it, `reason` added to its message."""
        if self.head is None or reason is None:
            return self.head
        return Head(self.head.status, self.head.headers, with_reason(self.head.body or b"", reason))

    def final_error(self, reason: str | None, tries: int) -> Exception:
        """The exception as the worker gets it: how often it was tried, and why not again."""
        assert self.error is not None
        notes = [f"tried {tries} times"] if tries > 1 else []
        notes += [reason] if reason else []
        if not notes:
            return self.error
        error = type(self.error)(f"{self.error} ({', '.join(notes)})")
        error.__cause__ = self.error.__cause__
        return error

    def as_task_error(self) -> TaskError:
        """The failure in the form that a policy's own function judges."""
        outcome = self.outcome
        return TaskError(
            type=type(self.error).__name__ if self.error is not None else "HTTPStatusError",
            message=str(self.error) if self.error is not None else outcome.reason,
            kind=outcome.kind,
            retryable=outcome.transient,
            status_code=outcome.status,
            retry_after=outcome.hint,
        )


def refused(head: Head, now: datetime) -> Failure:
    """An answer with an error status."""
    headers = head.by_name()
    outcome = answered(
        head.status,
        body=head.body or b"",
        should_retry=headers.get("x-should-retry"),
        hint=retry_after(headers, now),
    )
    return Failure(outcome, head=head)


def broken(error: httpx.HTTPError) -> Failure:
    """No answer, or half of one."""
    cause = error.__cause__
    hopeless = isinstance(error, _HOPELESS) or _is_refused_certificate(cause) or _is_proxys_refusal(error)
    kind = "timeout" if isinstance(error, httpx.TimeoutException) else getattr(error, "kind", "connection")
    return Failure(Outcome(kind=kind, transient=not hopeless, reason=type(error).__name__), error=error)


def _is_refused_certificate(cause: BaseException | None) -> bool:
    """Whether one side does not take the other's certificate: the server's here, or the client's there."""
    if isinstance(cause, aiohttp.ClientConnectorError):
        cause = cause.os_error
    refused = isinstance(cause, ssl.SSLError) and "ALERT" in str(cause.reason) and "CERTIFICATE" in str(cause.reason)
    return refused or isinstance(cause, ssl.SSLCertVerificationError)


def _is_proxys_refusal(error: httpx.HTTPError) -> bool:
    """Whether a proxy said no: it wants other credentials, or does not let through to there."""
    status = getattr(error.__cause__, "status", None)
    return isinstance(error, httpx.ProxyError) and status in {401, 403, 405, 407}


def unusable(head: Head, endpoint: str, redactor: Redactor) -> Failure:
    """An answer of a model that is not JSON."""
    body = head.body or b""
    start = redactor.text(body[: 2 * _SHOWN].decode("utf-8", "replace"))[:_SHOWN]
    content_type = head.by_name().get("content-type", "no content type")
    hint = "; check base_url, which ends in /v1 for most servers" if "html" in content_type else ""
    error = UnusableAnswerError(
        f"{endpoint} answered {head.status} with something that is not a JSON object "
        f"({content_type}, {len(body)} bytes): {start!r}{hint}"
    )
    return Failure(Outcome(kind="invalid_answer", transient=True, reason="an answer that is not JSON"), error=error)


def was_sent(error: BaseException) -> bool:
    """Whether the server may have received the request, and charge for it."""
    return not isinstance(error, _NEVER_SENT)

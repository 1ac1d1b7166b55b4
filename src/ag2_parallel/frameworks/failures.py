"""From whatever a task's code raised to a `TaskError`.

Providers' and frameworks' classes are told apart by what they look like (names, `status_code`,
`code`, `response`), so nothing of theirs is imported. An exception of this package says what it is
with a `kind` of its own.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.error_kinds import ERROR_KINDS, PERMANENT_KINDS
from ag2_parallel.errors import ConfigurationError, NotSerializableError, SharedAgentError, TaskStopped
from ag2_parallel.provider_errors import provider_error
from ag2_parallel.results import TaskError
from ag2_parallel.retry_after import retry_after

if TYPE_CHECKING:
    from ag2_parallel.ports import Draft
    from ag2_parallel.provider_errors import ProviderError
    from ag2_parallel.redaction import Redactor

_LONGEST_TRACEBACK: Final = 40_000
_MARGIN: Final = 2_000
"""Characters of a traceback that are kept, from both ends; a margin longer than keys are."""

_DEEPEST: Final = 40
"""Links of a chain of causes that are looked at."""

_ANSWERS: Final = ("body", "details", "json_body", "error")
"""Attributes in which SDKs keep the answer: most, google-genai, together, ollama."""

_OF_THE_GATE: Final = frozenset({"rate_limit", "invalid_answer"})
"""What the gate finds by itself: SDKs say no more of it than that a connection failed."""

_SIGNAL_HINT: Final = (
    "signal handlers can only be set in the main thread, and tasks run in worker threads: "
    "leave the handler out, or run this code in a process of its own, where it has a main thread"
)

_HALF_A_PAIR_HINT: Final = (
    "half of a surrogate pair is no text in UTF-8 and cannot be sent: repair the text, "
    'for example with text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
)

_BASE_URL_HINT: Final = "check base_url, which ends in /v1 for most servers"

_KIND_OF_CLASS: Final[Mapping[str, str]] = {
    "TaskStopped": "stopped",
    "UncertainEffectError": "uncertain",
    "HumanInputError": "human_input",  # AG2 1.x
    "ConfigNotProvidedError": "configuration",
    "UnsupportedInputError": "configuration",
    "UnsupportedToolError": "configuration",
    "APITimeoutError": "timeout",
    "TimeoutException": "timeout",  # httpx and its kin
    "Timeout": "timeout",  # requests
    "TimeoutError": "timeout",
    "ContentFilterFinishReasonError": "content_filter",
    "APIConnectionError": "connection",
    "TransportError": "connection",  # httpx
    "ConnectionError": "connection",
    "ClientConnectionError": "connection",  # aiohttp
    "APIStatusError": "provider",
    "APIError": "provider",
}
"""Names looked for among an exception's classes, the more telling ones first."""


class InvalidAnswerError(Exception):
    """Raised where a chat came to an end without an answer of use."""

    kind = "invalid_answer"


class ContentFilteredError(Exception):
    """Raised where a provider's content filter left nothing of an answer."""

    kind = "content_filter"


def task_error(exc: BaseException, redactor: Redactor, draft: Draft | None = None) -> TaskError:
    """What a task's result says about `exc`.

    Args:
        exc: What was raised; groups and chains of causes are looked through for what began it.
        redactor: Masks the message and the traceback.
        draft: What the attempt had, for the agent and the tool at work.

    Returns:
        The error as plain text and numbers.
    """
    shown = _unwrapped(_shown(exc))
    cause, kind = _cause(shown)
    if kind == "agent" and draft is not None and draft.tool is not None and isinstance(shown, Exception):
        kind = "tool"
    if kind == "agent" and _is_half_a_pair(shown):
        # Its prompt was checked, so it came from a model or a tool, and may be fine next time; or it was configured.
        kind = "invalid_answer" if draft is not None and _has_half_a_pair(draft.chat_history) else "configuration"
    return TaskError(
        type=type(shown).__name__,
        message=redactor.text(_message(shown, cause, kind)),
        kind=kind,
        retryable=kind not in PERMANENT_KINDS,
        traceback=traceback_text(exc, redactor),
        status_code=_status(cause),
        retry_after=_retry_after(cause),
        agent=draft.agent if draft else None,
        tool=draft.tool if draft else None,
    )


def _shown(exc: BaseException) -> BaseException:
    """The exception itself, or of a group the member that says most."""
    members = list(_members(exc))
    stopped = next((member for member in members if isinstance(member, TaskStopped)), None)
    return stopped or next((member for member in members if _cause(member)[1] != "agent"), members[0])


def _unwrapped(exc: BaseException) -> BaseException:
    """What the gate said, a limit's refusal or an answer of no use, where an SDK says "connection error" of it."""
    deepest = list(_chain(exc))[-1]
    said = getattr(deepest, "kind", None) in {"rate_limit", "invalid_answer"}
    return deepest if said and _kind(exc) == "connection" else exc


def _members(exc: BaseException, depth: int = 0) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup) and depth < _DEEPEST:
        for member in exc.exceptions:
            yield from _members(member, depth + 1)
    else:
        yield exc


def _cause(exc: BaseException) -> tuple[BaseException, str]:
    """The first link of the chain of causes whose kind can be told, or the link below it of the same kind."""
    found: tuple[BaseException, str] | None = None
    for link in _chain(exc):
        kind = _kind(link)
        if kind == "agent":
            continue
        if found is None:
            found = link, kind
            if _status(link) is not None or kind not in {"timeout", "provider", "connection"}:
                break
        elif kind == found[1] or getattr(link, "kind", None) == kind:  # an SDK wraps what the gate named
            found = link, kind
    return found or (exc, "agent")


def _chain(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = exc
    while link is not None and id(link) not in seen and len(seen) < _DEEPEST:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _kind(exc: BaseException) -> str:
    own = getattr(exc, "kind", None)
    if isinstance(own, str) and own in ERROR_KINDS:
        return own
    if isinstance(exc, SharedAgentError | NotSerializableError):
        return "shared_agent" if isinstance(exc, SharedAgentError) else "not_serializable"
    if isinstance(exc, ConfigurationError) or type(exc).__name__ == "OpenAIError":
        return "configuration"  # the SDK's root class itself: a client that cannot be made, as without a key
    names = {cls.__name__ for cls in type(exc).__mro__}
    by_class = next((kind for name, kind in _KIND_OF_CLASS.items() if name in names), None)
    if by_class in {"timeout", "stopped", "uncertain", "content_filter", "human_input", "configuration"}:
        return str(by_class)
    if by_class == "provider" or _is_answer(exc):
        return _answer(exc).kind
    return by_class or "agent"


def _is_answer(exc: BaseException) -> bool:
    """Whether the exception stands for an HTTP answer: it has a status and something of the answer."""
    return _status(exc) is not None and any(hasattr(exc, name) for name in (*_ANSWERS, "response", "headers"))


def _answer(exc: BaseException) -> ProviderError:
    """What the model server said, by the answer that the exception holds, or by its text."""
    body = next((body for name in _ANSWERS if (body := getattr(exc, name, None))), None)
    response = getattr(exc, "response", None)
    if body is None and isinstance(response, Mapping):  # botocore
        body = response
    elif body is None:  # httpx, requests: what was read of the answer; asking for `content` could go and read it
        content = getattr(response, "_content", None)
        body = content.decode("utf-8", "replace") if isinstance(content, bytes) else None
    if not isinstance(body, Mapping | list) and not str(body).startswith(("{", "[")):
        body = {"message": f"{body or ''} {_text(exc)}"}
    codes = [str(code) for name in ("code", "type") if (code := getattr(exc, name, None)) is not None]
    return provider_error(
        _status(exc),
        body,
        code=" ".join(codes),
        should_retry=_headers(exc).get("x-should-retry"),
    )


def _status(exc: BaseException) -> int | None:
    response = getattr(exc, "response", None)
    if isinstance(response, Mapping):  # botocore
        return _http_status(_within(response, "ResponseMetadata").get("HTTPStatusCode"))
    for holder in (exc, response):
        for name in ("status_code", "status", "http_status"):
            status = _http_status(getattr(holder, name, None))
            if status is not None:
                return status
    return _http_status(getattr(exc, "code", None)) if response is not None else None  # google-genai


def _http_status(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599 else None


def _within(value: Any, name: str) -> Mapping[str, Any]:
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _headers(exc: BaseException) -> dict[str, str]:
    response = getattr(exc, "response", None)
    headers = getattr(response, "headers", None) or getattr(exc, "headers", None)
    if isinstance(response, Mapping):
        headers = _within(_within(response, "ResponseMetadata"), "HTTPHeaders")
    if not isinstance(headers, Mapping):
        return {}
    return {str(name).lower(): str(value).strip() for name, value in headers.items()}


def _retry_after(exc: BaseException) -> float | None:
    asked = retry_after(_headers(exc), datetime.now(UTC))
    return _answer(exc).retry_after if asked is None and _is_answer(exc) else asked


def _message(shown: BaseException, cause: BaseException, kind: str) -> str:
    text = _text(shown)
    if isinstance(shown, ValueError) and "signal only works in main thread" in text:
        return f"{text}; {_SIGNAL_HINT}"
    if _is_half_a_pair(shown):
        return f"{text}; {_HALF_A_PAIR_HINT}"
    if kind == "context_length" and (tokens := _answer(cause).tokens) is not None:
        return f"{text} ({tokens})"
    deepest = list(_chain(cause))[-1]
    telling = kind == "connection" or getattr(deepest, "kind", None) in _OF_THE_GATE
    if telling and deepest is not shown and (why := _text(deepest)) and why not in text:
        server = _server(shown) if kind == "connection" else ""
        return f"{text} ({server and f'{server}: '}{type(deepest).__name__}: {why})"
    if _status(cause) in {404, 405} and "model" not in text.lower() and (server := _server(cause)):
        path = cause.request.url.path  # type: ignore[attr-defined]
        hint = "" if path.count("/") > 2 else f": {_BASE_URL_HINT}"  # the base_url has no path
        return f"{text} ({cause.request.method} {server}{path}{hint})"  # type: ignore[attr-defined]
    return text


def _server(exc: BaseException) -> str:
    """Where an SDK's request went to, without user information; empty where it is not known."""
    try:
        url = exc.request.url  # type: ignore[attr-defined]
        return f"{url.scheme}://{url.netloc.decode('ascii')}" if url.host else ""
    except Exception:  # httpx's errors raise where they have no request
        return ""


def _is_half_a_pair(exc: BaseException) -> bool:
    return isinstance(exc, UnicodeEncodeError) and exc.reason == "surrogates not allowed"


def _has_half_a_pair(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError):  # keys that JSON has not, a circle
        return False
    return False


def _text(exc: BaseException) -> str:
    try:
        text = str(exc)
    except BaseException as broken:  # an exception that cannot say what it is still has to be reported
        return f"<its text cannot be had: {type(broken).__name__}>"
    return text or type(exc).__name__


def _traceback(exc: BaseException) -> str:
    try:
        lines = traceback.TracebackException(type(exc), exc, exc.__traceback__, compact=True).format()
        text = "".join(lines)
    except BaseException as broken:
        return f"<the traceback of a {type(exc).__name__} cannot be had: {type(broken).__name__}>"
    return text


def traceback_text(exc: BaseException, redactor: Redactor) -> str:
    """The traceback of `exc`, keys masked, without local variables; of a long one the middle is left out."""
    text = _traceback(exc)
    if len(text) <= _LONGEST_TRACEBACK:
        return redactor.text(text)
    # A key that the cut went through would not be known again: what is masked is longer by a margin.
    half = _LONGEST_TRACEBACK // 2
    start, end = redactor.text(text[: half + _MARGIN])[:-_MARGIN], redactor.text(text[-half - _MARGIN :])[_MARGIN:]
    return f"{start}\n... {len(text) - 2 * half} characters left out ...\n{end}"

"""What a model server's error answer means: one reading of the answers of all providers.

Known are OpenAI and what speaks its protocol (vLLM, llama.cpp, Ollama, Groq, Mistral, Text Generation
Inference), Azure, Anthropic, Gemini and Bedrock. A body says more than a status: Gemini sends 429 for
a day's quota, Anthropic 400 for an empty account, llama.cpp 500 for a prompt that is too long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST: Final = 6
_LONGEST: Final = 4000
"""Characters of a body's messages that are looked at."""

_MESSAGES: Final = frozenset({"message", "Message", "msg", "detail", "error", "title"})
_CODES: Final = frozenset({
    "code", "Code", "type", "status", "reason", "quotaId", "quota_limit", "error_type", "__type", "finish_reason",
})  # fmt: skip

_AGAIN_STATUS: Final = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError:
    """What an error answer means.

    Attributes:
        kind: The cause, in the words of `TaskError.kind`.
        transient: Whether it can go away by itself; never for a kind that is permanent.
        tokens_asked: Tokens that the request came to, where it was too long and the server says so.
        tokens_allowed: Tokens that it may have.
        retry_after: Seconds that the body asks to wait.
    """

    kind: str
    transient: bool
    tokens_asked: int | None = None
    tokens_allowed: int | None = None
    retry_after: float | None = None

    @property
    def tokens(self) -> str | None:
        """The tokens asked and allowed in words, as far as they are known."""
        parts = [] if self.tokens_asked is None else [f"{self.tokens_asked} tokens asked"]
        parts += [] if self.tokens_allowed is None else [f"{self.tokens_allowed} tokens allowed"]
        return ", ".join(parts) or None


def provider_error(
    status: int | None, body: Any = None, *, code: str | None = None, should_retry: str | None = None
) -> ProviderError:
    """Read an error answer.

    Args:
        status: The HTTP status; None where the error came inside an answer that had begun well.
        body: The body: bytes, text, or what was parsed from it.
        code: A code of the error that was found beside the body.
        should_retry: The header `x-should-retry`, which OpenAI and Anthropic send where they know better.
    """
    found = list(_pairs(_plain(body), 0))
    codes = " ".join([*(f"{name}={value}" for name, value in found if name != "message"), code or ""]).lower()
    said = " ".join(value for name, value in found if name == "message")[:_LONGEST]
    kind = _kind_by_words(status, codes, said)
    asked, allowed = _tokens(said, found) if kind == "context_length" else (None, None)
    transient = False
    if kind is None:
        kind = _KINDS.get(status or 0, "provider")
        transient = status is None or status in _AGAIN_STATUS or status >= 500
        if should_retry in {"true", "false"}:
            transient = should_retry == "true"
        if transient and kind in {"configuration", "authentication"}:
            kind = "provider"  # what goes away by itself is nothing the caller can put right
    elif kind in {"rate_limit", "provider"}:
        transient = should_retry != "false"
    return ProviderError(
        kind=kind,
        transient=transient,
        tokens_asked=asked,
        tokens_allowed=allowed,
        retry_after=_wait(said, found) if transient else None,
    )


def is_transient(kind: str, status: int | None) -> bool:
    """Whether a failed model call of this kind may go well if it is made again."""
    if kind == "rate_limit":
        return True
    return kind in {"timeout", "connection", "provider"} and (
        status is None or status in _AGAIN_STATUS or status >= 500
    )


def was_filtered(answer: Any) -> bool:
    """Whether an answer, parsed or as an SDK's object, was emptied by the provider's content filter."""
    choices = _part(answer, "choices")
    if not isinstance(choices, list) or not choices:
        return False
    message = _part(choices[0], "message")
    empty = not _part(message, "content") and not _part(message, "tool_calls")
    return empty and str(_part(choices[0], "finish_reason")).startswith("content_filter")


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _kind_by_words(status: int | None, codes: str, said: str) -> str | None:
    """The kind, where codes or words tell more than the status."""
    if "exceeded your current quota" in said.lower() and not _PASSING.search(codes):
        return "quota"  # Gemini says the same of a minute's quota, and then also when to come back
    for kind, statuses, code_pattern, words in _RULES:
        if statuses is not None and status is not None and status not in statuses:
            continue
        if (code_pattern and code_pattern.search(codes)) or (words and words.search(said)):
            return kind
    return None


def _plain(body: Any) -> Any:
    if isinstance(body, bytes | bytearray):
        body = bytes(body[: 64 * 1024]).decode("utf-8", "replace")
    if isinstance(body, str):
        return _parsed(body) or {"message": body}
    return body


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _pairs(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Codes and messages (under the one name `message`) of a body; what it echoes of the request is left out."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list | tuple):
        for each in value:
            yield from _pairs(each, depth + 1)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            if isinstance(each, str) and name in _MESSAGES:
                inner = _parsed(each)  # gateways put the answer they got into their own message
                yield from _pairs(inner, depth + 1) if inner else [("message", each)]
            elif isinstance(each, str | int) and (name in _CODES or name in _NUMBERS):
                yield name, str(each)
            elif isinstance(each, Mapping | list | tuple) and name not in _ECHOES:
                yield from _pairs(each, depth + 1)


_NUMBERS: Final = frozenset({"n_prompt_tokens", "n_ctx", "retryDelay"})
_ECHOES: Final = frozenset({"input", "param", "loc", "ctx", "content_filter_result", "content_filter_results"})


def _tokens(said: str, found: list[tuple[str, str]]) -> tuple[int | None, int | None]:
    named = {name: int(value) for name, value in found if name in {"n_prompt_tokens", "n_ctx"} and value.isdigit()}
    if named:
        return named.get("n_prompt_tokens"), named.get("n_ctx")
    for pattern in _TOKENS:
        match = pattern.search(said)
        if match is not None:
            numbers = {
                name: int(value.replace(",", "").replace("_", ""))
                for name, value in match.groupdict().items()
                if value is not None
            }
            asked = numbers.get("asked")
            return None if asked is None else asked + numbers.get("more", 0), numbers.get("allowed")
    return None, None


def _wait(said: str, found: list[tuple[str, str]]) -> float | None:
    """Gemini, Azure and OpenAI write in the body how long to wait: `26s`, `1m12.5s`, `320ms`, `26 seconds`."""
    delay = next((value for name, value in found if name == "retryDelay"), None)
    match = re.fullmatch(_DURATION, delay) if delay else _AGAIN_IN.search(said)
    if match is None:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?) ?(ms|[hms])", match[1])
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = r"((?:\d+(?:\.\d+)?(?:ms|h|m|s| ?(?:hour|minute|second)s?) ?)+)"
_AGAIN_IN: Final = re.compile(rf"(?:try again|retry)(?: after| in) {_DURATION}", re.IGNORECASE)

_N: Final = r"\d[\d,_]*"
_TOKENS: Final = tuple(
    re.compile(pattern.replace("<N>", _N), re.IGNORECASE | re.DOTALL)
    for pattern in (
        # vLLM
        r"is too large: (?P<more><N>)\. This model's maximum context length is (?P<allowed><N>) tokens and your request has (?P<asked><N>) input",
        r"passed (?P<asked><N>) input tokens and requested (?P<more><N>) output tokens.{0,40}?context length is only (?P<allowed><N>)",
        r"prompt \((?:total )?length (?P<asked><N>)\).{0,80}?(?:model length of|context length) (?P<allowed><N>)",
        # OpenAI, Azure, Groq, vLLM
        r"maximum context length is (?P<allowed><N>) tokens.{0,60}?(?:requested|resulted in|request has)(?: about)? (?P<asked><N>)",
        r"maximum context length is (?P<allowed><N>)",
        r"Limit (?P<allowed><N>), (?:Used <N>, )?Requested (?P<asked><N>)",
        # Anthropic
        r"prompt is too long: (?P<asked><N>) tokens > (?P<allowed><N>)",
        r"exceed context limit: (?P<asked><N>) \+ (?P<more><N>) > (?P<allowed><N>)",
        # Gemini
        r"token count \((?P<asked><N>)\) exceeds the maximum number of tokens allowed \((?P<allowed><N>)\)",
        r"exceeds the maximum number of tokens allowed \((?P<allowed><N>)\)",
        r"token count is (?P<asked><N>) but.{0,40}? up to (?P<allowed><N>)",
        # llama.cpp, llama-cpp-python
        r"request \((?P<asked><N>) tokens\) exceeds the available context size \((?P<allowed><N>) tokens\)",
        r"Requested tokens \((?P<asked><N>)\) exceed context window of (?P<allowed><N>)",
        # Mistral, Text Generation Inference
        r"Prompt contains (?P<asked><N>) tokens.{0,60}?model with (?P<allowed><N>)",
        r"must be <= (?P<allowed><N>)\. Given: (?P<asked><N>) `inputs` tokens and (?P<more><N>) `max_new_tokens`",
    )
)

_PASSING: Final = re.compile("perminute|persecond|retrydelay=(?!.*perday)")
_BAD_REQUEST: Final = frozenset({400, 413, 422, 500})


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_RULES: Final[tuple[tuple[str, frozenset[int] | None, re.Pattern[str] | None, re.Pattern[str] | None], ...]] = (
    (
        "quota",
        frozenset({400, 402, 403, 429}),
        _words(
            r"insufficient_quota|billing_(?:error|hard_limit_reached|not_active|disabled)|insufficient_(?:balance|credits)"
            r"|perday|per_day|daily"
        ),
        _words(
            r"credit balance is too low|insufficient (?:balance|credits|funds)|reached your specified .{0,20}usage limits"
            r"|quota exceeded for .{0,200}(?:per day|limit: 0\b)|exceeded your monthly|too many tokens per day|account is not active"
        ),
    ),
    (
        "context_length",
        frozenset({413, 429}),
        None,
        _words(r"request too large.{0,200}requested \d"),  # more at once than the limit of a whole minute
    ),
    (
        "context_length",
        _BAD_REQUEST,
        _words(r"context_length_exceeded|exceed_context_size_error|model_max_prompt_tokens_exceeded"),
        _words(
            r"maximum context length|context (?:length|limit|size|window)|maximum number of tokens allowed"
            r"|prompt is too long|input is too long|too many (?:input )?tokens|prompt contains \d+ tokens"
            r"|longer than the maximum model length|too long to fit into the model|max_new_tokens` must be <="
            r"|token count is \d+ but"
        ),
    ),
    (
        "content_filter",
        frozenset({400, 403, 422}),
        _words(
            r"content_filter|content_policy_violation|responsibleaipolicyviolation|content_policy|moderation_blocked"
        ),
        _words(
            r"content management policy|blocked by (?:our )?content filter|potentially violating our usage policy"
            r"|response was filtered|blocked by (?:the )?(?:safety|guardrail)"
        ),
    ),
    (
        "authentication",
        frozenset({400, 401, 403}),
        _words(r"invalid_api_key|api_key_invalid|authentication_error|unrecognizedclient|expiredtoken|accessdenied"),
        _words(r"api key not valid|invalid (?:api|x-api-)key|incorrect api key"),
    ),
    (
        "rate_limit",
        frozenset({400, 403, 503}),
        _words(r"throttl|toomanyrequests|slow_down|rate_limit_exceeded|ratelimitexceeded"),
        None,
    ),
    ("provider", frozenset({400, 429, 529}), _words(r"overloaded_error|modelnotready"), None),
)
"""Kind, the statuses it may come with (an error inside a stream has none), codes, and words of the message."""

_KINDS: Final = {
    400: "configuration",
    401: "authentication",
    402: "quota",
    403: "authentication",
    404: "configuration",
    405: "configuration",
    407: "authentication",  # of a proxy
    408: "timeout",
    413: "context_length",
    422: "configuration",
    429: "rate_limit",
    504: "timeout",
}
"""What a status says where the body says nothing more; others are the provider's own trouble."""

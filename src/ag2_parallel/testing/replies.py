"""What a scripted model is asked, and what it answers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ag2_parallel.testing.faults import Fault


class TokenCounts(NamedTuple):
    """Tokens of one answer, as its usage block has them."""

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request for a chat completion, as a reply function gets it.

    Attributes:
        body: The request's JSON body.
        number: Its place among the requests the server's ledger has seen, from 0.
        path: The path it was sent to.
        headers: HTTP headers with lower-case names; those that carry keys are left out.
    """

    body: dict[str, Any]
    number: int = 0
    path: str = "/v1/chat/completions"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str | None:
        """The model asked for."""
        return self.body.get("model")

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far."""
        messages = self.body.get("messages")
        return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools the model may call."""
        return self.body.get("tools") or []

    @property
    def stream(self) -> bool:
        """Whether the answer is to come as server-sent events."""
        return bool(self.body.get("stream"))

    @property
    def temperature(self) -> float | None:
        """The sampling temperature, if one was sent."""
        return self.body.get("temperature")

    @property
    def wants_usage(self) -> bool:
        """Whether a stream is to end with a usage block (`stream_options.include_usage`)."""
        options = self.body.get("stream_options")
        return isinstance(options, dict) and bool(options.get("include_usage"))

    @property
    def last_text(self) -> str:
        """Text of the last message whose role is `user`; empty without one."""
        return next((text_of(message) for message in reversed(self.messages) if message.get("role") == "user"), "")

    @property
    def system_text(self) -> str:
        """Text of all system and developer messages, one a line; empty without one."""
        return "\n".join(text_of(each) for each in self.messages if each.get("role") in {"system", "developer"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the scripted model calls.

    Attributes:
        name: The tool's name.
        arguments: Its arguments; a str is sent as it is, valid JSON or not.
        id: The call's id; made from the request's number by default.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's whole answer.

    Attributes:
        text: What the model says.
        tool_calls: The tools it calls.
        latency: Seconds before anything is sent; None: the server's.
        usage: `(prompt, completion)` tokens, or an object or mapping with `prompt_tokens`,
            `completion_tokens` and perhaps `cached_tokens`; None: counted roughly, a token a word.
        chunk_delay: Seconds between the chunks of a streamed answer.
        finish_reason: None: `tool_calls` where tools are called, else `stop`.
        headers: More HTTP headers of the answer.
        model: The model named in the answer; None: the one asked for.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = field(default=(), kw_only=True)
    latency: float | None = field(default=None, kw_only=True)
    usage: Any = field(default=None, kw_only=True)
    chunk_delay: float = field(default=0.0, kw_only=True)
    finish_reason: str | None = field(default=None, kw_only=True)
    headers: Mapping[str, str] | None = field(default=None, kw_only=True)
    model: str | None = field(default=None, kw_only=True)


Answer: TypeAlias = str | Reply | Fault | Mapping[str, Any]
"""What the server may send: text, a `Reply`, a `Fault`, or the raw body of a completion."""

ReplyFunction: TypeAlias = Callable[[ChatRequest], Answer | Awaitable[Answer]]


class Script:
    """Says what answers the next request. Used from one thread."""

    def __init__(self, reply: Answer | Sequence[Answer] | ReplyFunction | None) -> None:
        """Take any of the forms that `ModelServer` takes."""
        self.function: ReplyFunction | None = None
        self._answers: list[Answer] = []
        self._next = 0
        if reply is None:
            self.function = _echo
        elif isinstance(reply, str | Reply | Fault | Mapping):
            self._answers = [reply]
        elif callable(reply):
            self.function = reply
        elif not isinstance(reply, Sequence):
            checked_answer(reply)
        else:
            self._answers = [checked_answer(answer) for answer in reply]
            if not self._answers:
                raise ValueError("the reply of a ModelServer is an empty sequence; give at least one answer")

    @property
    def may_block(self) -> bool:
        """Whether the answer comes from a user's function that is not a coroutine function."""
        return self.function not in {None, _echo} and not inspect.iscoroutinefunction(self.function)

    def take(self) -> Answer:
        """The next answer of the sequence; after its end the last one, again and again."""
        answer = self._answers[min(self._next, len(self._answers) - 1)]
        self._next += 1
        return answer


def checked_answer(value: object) -> Answer:
    """`value` if the server can send it; `TypeError` otherwise."""
    if isinstance(value, str | Reply | Fault | Mapping):
        return value
    raise TypeError(f"a ModelServer cannot answer with {type(value).__name__}; give a str, Reply, Fault or dict")


def token_counts(usage: Any) -> TokenCounts:
    """Tokens from a pair, a mapping or an object with the fields of a usage block."""
    if isinstance(usage, Sequence):
        return TokenCounts(*usage)
    if isinstance(usage, Mapping):
        details = usage.get("prompt_tokens_details") or {}
        cached = usage.get("cached_tokens", details.get("cached_tokens", 0))
        return TokenCounts(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), cached or 0)
    return TokenCounts(usage.prompt_tokens, usage.completion_tokens, getattr(usage, "cached_tokens", 0))


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, also where its content is a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _echo(request: ChatRequest) -> str:
    return f"echo: {request.last_text}"

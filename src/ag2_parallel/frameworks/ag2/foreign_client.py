"""A model client that sends by itself, governed from outside.

The clients of Gemini, Vertex AI, Bedrock, Ollama, DashScope, xAI, Z.AI and TypeSafe take no HTTP client of ours, and
those of a user's own classes are anything. Each is put into a `ForeignClient` of the attempt, which makes
its calls through `AttemptGate.foreign_call_soon`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.frameworks.ag2.recorded_answers import Answer, foreign_record
from ag2_parallel.frameworks.failures import task_error

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope
    from ag2_parallel.results import TaskError

_CHARACTERS_PER_TOKEN: Final = 4

_ADDRESSES: Final = {
    "anthropic": "https://api.anthropic.com",
    "bedrock": "https://bedrock-runtime.amazonaws.com",
    "dashscope": "https://dashscope.aliyuncs.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "mistral": "https://api.mistral.ai",
    "ollama": "http://localhost:11434",
    "openai": "https://api.openai.com",
    "vertexai": "https://aiplatform.googleapis.com",
    "xai": "https://api.x.ai",
    "zai": "https://api.z.ai",
}
"""Where a provider is asked when its configuration names no address; prices and limits go by it."""

_CACHE_APART: Final = frozenset({"anthropic", "bedrock"})
"""Providers that do not count what came from a cache among the prompt's tokens."""


class ForeignClient:
    """AG2's `LLMClient` protocol around a client that sends by itself; everything else is the client's own."""

    def __init__(self, client: Any, config: Any, scope: AttemptScope, price: tuple[float, float] | None) -> None:
        """`config` is what the client was made of."""
        self._client = client
        self._scope = scope
        self._price = price
        self._provider = _told(config, "provider")
        self._model = _told(config, "model")
        self._endpoint = _endpoint(config, self._provider)

    async def __call__(self, messages: Any, context: Any, **options: Any) -> Any:
        """Make a call, through the attempt's gate."""
        messages = list(messages)
        published: list[Any] = []

        async def hear(event: Any) -> None:
            published.append(event)

        async def work() -> Answer:
            number = context.stream.subscribe(hear)
            try:
                response = await self._client(messages, context, **options)
            finally:
                context.stream.unsubscribe(number)
            return Answer(response, published)

        def failed(error: Exception) -> TaskError:
            found = task_error(error, self._scope.redactor)
            # A next try would say once more what everybody who listens has heard.
            return replace(found, retryable=False) if published else found

        answer = await self._scope.gate.foreign_call_soon(
            work,
            model=self._model,
            endpoint=self._endpoint,
            usage=lambda answer: self._usage(answer.response),
            failed=failed,
            price=self._price,
            estimate=(_length(context.prompt) + _length(messages)) // _CHARACTERS_PER_TOKEN,
            record=foreign_record(messages, context.prompt, options),
        )
        if not answer.live:
            for event in answer.published:
                await context.send(event)
        return answer.response

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_client":  # asked while it is being copied
            raise AttributeError(name)
        return getattr(self._client, name)

    def _usage(self, answer: Any) -> Mapping[str, Any] | None:
        """The answer's tokens in the form of OpenAI's usage blocks."""
        used = getattr(answer, "usage", None)
        prompt, completion, total, cached = (
            getattr(used, name, None) or 0
            for name in ("prompt_tokens", "completion_tokens", "total_tokens", "cache_read_input_tokens")
        )
        if not prompt and not completion:
            return None
        written = getattr(used, "cache_creation_input_tokens", None) or 0
        if self._provider in _CACHE_APART:
            return {
                "input_tokens": prompt,
                "output_tokens": completion,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": written,
            }
        # What a model thinks is paid for like what it says; Gemini counts it in the total alone.
        completion = max(completion, total - prompt)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


def _told(config: Any, name: str) -> str | None:
    """A property that a configuration may not have: AG2's scripted one raises."""
    try:
        value = getattr(config, name, None)
    except NotImplementedError:
        return None
    value = getattr(value, "value", value)  # a provider is an enumeration's member
    return str(value) if value else None


def _endpoint(config: Any, provider: str | None) -> str:
    names = ("base_url", "server_url", "endpoint_url", "api_host", "host")
    address = next((address for name in names if (address := getattr(config, name, None))), None)
    if address is not None:
        return str(address).rstrip("/")
    return _ADDRESSES.get(provider or "", provider or type(config).__name__)


def _length(value: Any) -> int:
    """Characters of the texts in prompts and events; an image is not counted by its bytes."""
    if isinstance(value, str):
        return len(value)
    if value is None:
        return 0
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return sum(map(_length, value))
    names = ("parts", "results", "result", "content", "message")  # the first that has a text; some repeat another
    return next((length for name in names if (length := _length(getattr(value, name, None)))), 0)

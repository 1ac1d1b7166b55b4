"""A model client that sends by itself, governed from outside.

The clients of Anthropic, Gemini, Bedrock, Groq, Mistral, Ollama, Cohere, Together and Cerebras, and classes of a
user's own, take no HTTP client. Each is put into a `GovernedClient` of the attempt, which makes its calls
through `AttemptGate.foreign_call`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.frameworks.classic.model_configs import is_routed, price_of
from ag2_parallel.frameworks.classic.recorded_answers import foreign_record
from ag2_parallel.frameworks.failures import task_error

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope

_CHARACTERS_PER_TOKEN: Final = 4

_ADDRESSES: Final = {
    "anthropic": "https://api.anthropic.com",
    "anthropic_v2": "https://api.anthropic.com",
    "bedrock": "https://bedrock-runtime.amazonaws.com",
    "bedrock_v2": "https://bedrock-runtime.amazonaws.com",
    "cerebras": "https://api.cerebras.ai",
    "cohere": "https://api.cohere.com",
    "google": "https://generativelanguage.googleapis.com",
    "groq": "https://api.groq.com",
    "mistral": "https://api.mistral.ai",
    "ollama": "http://localhost:11434",
    "together": "https://api.together.xyz",
}
"""Where a provider is asked when its entry names no address; prices and limits go by it."""


class GovernedClient:
    """AG2's `ModelClient` protocol around a client that sends by itself.

    Hashed by identity, as AG2 needs it. Everything else is the client's own.
    """

    def __init__(self, client: Any, scope: AttemptScope, entry: Any) -> None:
        """`entry` is the configuration entry that the client was made from, where that is known."""
        self._client = _without_retries(client)
        self._scope = scope
        self._price = price_of(entry)
        self._endpoint = _endpoint(entry, client)
        self._model = getattr(entry, "model", None)

    def create(self, params: dict[str, Any]) -> Any:
        """Make a call, through the attempt's gate."""
        self._scope.check_call()
        model = params.get("model") or self._model
        answer = self._scope.gate.foreign_call(
            lambda: self._client.create(params),
            model=str(model) if model else None,
            endpoint=self._endpoint,
            usage=self._usage,
            failed=lambda error: task_error(error, self._scope.redactor),
            price=self._price,
            estimate=_length(params.get("messages")) // _CHARACTERS_PER_TOKEN,
            record=foreign_record(params),
        )
        self._scope.check_call()
        return answer

    def message_retrieval(self, response: Any) -> Any:
        """The client's own."""
        return self._client.message_retrieval(response)

    def cost(self, response: Any) -> Any:
        """The client's own."""
        return self._client.cost(response)

    def get_usage(self, response: Any) -> Any:
        """The client's own."""
        return self._client.get_usage(response)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_client":  # asked while it is being copied
            raise AttributeError(name)
        return getattr(self._client, name)

    def _usage(self, answer: Any) -> Mapping[str, Any] | None:
        try:
            usage = self._client.get_usage(answer)
        except Exception:
            return None  # AG2 will ask too, and the error is the task's then
        if not isinstance(usage, Mapping) or not any(
            usage.get(name) for name in ("prompt_tokens", "completion_tokens")
        ):
            return None
        return usage


def is_model_client(client: Any) -> bool:
    """Whether calls can be made with it now: no placeholder for a class that is registered later, not governed yet."""
    return not isinstance(client, GovernedClient) and type(client).__name__ != "PlaceHolderClient"


def has_other_clients(agent: Any) -> bool:
    """Whether an entry of the agent's configuration has a client that takes no HTTP client."""
    return bool(agent.llm_config) and not all(is_routed(entry) for entry in agent.llm_config.config_list)


def keep_registered(before: Any, after: Any) -> None:
    """Put a user's registered clients back, where AG2 made new placeholders for them."""
    if len(before._clients) == len(after._clients):  # noqa: SLF001 - the wrapper has no other way in
        after._clients = [  # noqa: SLF001
            old if isinstance(old, GovernedClient) and type(new).__name__ == "PlaceHolderClient" else new
            for old, new in zip(before._clients, after._clients, strict=True)  # noqa: SLF001
        ]


def _without_retries(client: Any) -> Any:
    """A copy whose SDK does not retry, where it keeps one that can be told: the gate retries."""
    if not type(client).__module__.startswith("autogen."):
        return client
    copied = copy.copy(client)  # some keep notes on themselves during a call
    for name, sdk in vars(client).items():
        if hasattr(sdk, "with_options") and hasattr(sdk, "max_retries"):
            setattr(copied, name, sdk.with_options(max_retries=0))
    return copied


def _endpoint(entry: Any, client: Any) -> str:
    address = next((a for name in ("client_host", "base_url") if (a := getattr(entry, name, None))), None)
    if address is not None:
        return str(address).rstrip("/")
    if getattr(entry, "model_client_cls", None) or entry is None:
        return type(client).__name__
    return _ADDRESSES.get(entry.api_type, str(entry.api_type))


def _length(value: Any) -> int:
    """Characters of the texts in messages; an image is not counted by its letters."""
    if isinstance(value, str):
        return 0 if value.startswith("data:") else len(value)
    if isinstance(value, Mapping):
        return sum(_length(each) for each in value.values())
    return sum(_length(each) for each in value) if isinstance(value, list | tuple) else 0

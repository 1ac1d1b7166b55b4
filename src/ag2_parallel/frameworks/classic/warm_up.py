"""The one-off costs of AG2 Classic: a thousand modules, half of them loaded by the first chat."""

from __future__ import annotations

import threading
from typing import Any

import httpx

_lock = threading.Lock()
_warm = threading.Event()

_COMPLETION = {
    "id": "warm-up",
    "object": "chat.completion",
    "created": 0,
    "model": "warm-up",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ready"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class _InProcessClient(httpx.Client):
    """Answers without a network."""

    def __init__(self) -> None:
        super().__init__(transport=httpx.MockTransport(lambda _request: httpx.Response(200, json=_COMPLETION)))

    def __deepcopy__(self, memo: dict[int, Any]) -> _InProcessClient:
        return self


class _SilentStream:
    """Takes what AG2 reports and drops it."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print nothing."""

    def send(self, message: Any) -> None:
        """Show nothing."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:  # noqa: ARG002 - AG2's Protocol
        """Answer nothing; nobody asks."""
        return ""


def warm_up() -> None:
    """Import AG2 and run one chat that stays inside the process. Does nothing the second time."""
    with _lock:
        if not _warm.is_set():
            _chat()
            _warm.set()


def _chat() -> None:
    from autogen import ConversableAgent, LLMConfig
    from autogen.io.base import IOStream

    from ag2_parallel.frameworks.classic.cloning import Template

    entry = {
        "model": "warm-up",
        "api_key": "none",
        "base_url": "http://localhost/v1",
        "max_retries": 0,
        "price": [0, 0],
    }
    with _InProcessClient() as client, IOStream.set_default(_SilentStream()):
        config = LLMConfig({**entry, "http_client": client})
        agent = ConversableAgent("warm_up", llm_config=config, human_input_mode="NEVER")
        user = ConversableAgent("user", llm_config=False, human_input_mode="NEVER")
        user.initiate_chat(Template(agent).clone().root, message="ready?", max_turns=1, summary_args={})

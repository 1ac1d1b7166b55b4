"""The one-off costs of AG2 1.x: its import, and what the first ask loads and compiles."""

from __future__ import annotations

import importlib
import threading
from typing import Any

from ag2_parallel.event_loops import own_event_loop

_lock = threading.Lock()
_warm = threading.Event()

_LOADED_LATER = ("govern", "direct_door", "conversation", "questions", "template", "workflow")
"""Modules beside this one that import AG2, and so are loaded when a task needs them."""

_COMPLETION = {
    "id": "warm-up",
    "object": "chat.completion",
    "created": 0,
    "model": "warm-up",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ready"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def warm_up() -> None:
    """Import AG2 and run one ask that stays inside the process. Does nothing the second time."""
    with _lock:
        if not _warm.is_set():
            import ag2

            for name in _LOADED_LATER:
                importlib.import_module(f"ag2_parallel.frameworks.ag2.{name}")
            loop = own_event_loop()
            try:
                loop.run_until_complete(_ask(ag2))
            finally:
                loop.close()
            _warm.set()


async def _ask(ag2: Any) -> None:
    config, client = _openai_inside_the_process()
    try:
        await ag2.Agent("warm_up", config=config).ask("ready?")
    finally:
        if client is not None:
            await client.aclose()


def _openai_inside_the_process() -> tuple[Any, Any]:
    """A configuration of OpenAI's SDK that uses no network, and its HTTP client; of AG2 alone without the SDK."""
    try:
        import httpx2
        from ag2.config import OpenAIConfig

        client = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=_COMPLETION)))
        return OpenAIConfig(
            "warm-up", api_key="none", base_url="http://localhost/v1", max_retries=0, http_client=client
        ), client
    except ImportError:  # another provider's SDK alone is installed
        return _Ready(), None


class _Ready:
    """A model inside the process."""

    provider = "openai"
    model = "warm-up"

    def copy(self) -> _Ready:
        return self

    def create(self) -> Any:
        from ag2.events import ModelMessage, ModelResponse

        async def client(_messages: Any, _context: Any, **_options: Any) -> Any:
            return ModelResponse(ModelMessage("ready"))

        return client

"""The one-off costs of AG2 1.x: its import, and what the first ask loads and compiles."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

_lock = threading.Lock()
_warm = threading.Event()


def warm_up() -> None:
    """Import AG2 and run one ask that stays inside the process. Does nothing the second time."""
    with _lock:
        if not _warm.is_set():
            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(_ask())
            finally:
                loop.close()
            _warm.set()


async def _ask() -> None:
    import ag2
    import ag2.config
    from ag2.events import ModelMessage, ModelResponse

    async def client(_messages: Any, _context: Any, **_options: Any) -> Any:
        return ModelResponse(ModelMessage("ready"))

    class Ready:
        """A model inside the process."""

        provider = ag2.config.ModelProvider.OPENAI
        model = "warm-up"

        def copy(self) -> Ready:
            return self

        def create(self) -> Any:
            return client

    await ag2.Agent("warm_up", config=Ready()).ask("ready?")

"""AG2 1.x without a runner: `asyncio.gather`, and a fresh agent in every task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import hand_written

if TYPE_CHECKING:
    from collections.abc import Callable


def config(base_url: str, **more: Any) -> Any:
    """A fresh model configuration."""
    from ag2.config import OpenAIConfig

    return OpenAIConfig(hand_written.MODEL, api_key=hand_written.KEY, base_url=base_url, **more)


def shared_client() -> Any:
    """One HTTP client for all agents of a loop."""
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx2.AsyncClient(limits=limits, timeout=600)


def agent(base_url: str, number: int, **more: Any) -> Any:
    """A fresh agent."""
    from ag2 import Agent

    return Agent(f"assistant_{number}", hand_written.SYSTEM_MESSAGE, config=config(base_url, **more))


def gathered(workers: int, make: Callable[[int], Any], tasks: int) -> int:
    """Ask a fresh agent in each task, so many at once; how many gave an answer."""

    async def run() -> int:
        turns = asyncio.Semaphore(workers)

        async def ask(number: int) -> str:
            async with turns:
                reply = await make(number).ask(hand_written.prompt(number))
                return str(reply.body)

        return sum(map(bool, await asyncio.gather(*map(ask, range(tasks)))))

    return asyncio.run(run())

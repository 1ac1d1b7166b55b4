"""The pattern that is written by hand without a runner: a thread pool, and fresh agents in every task."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-" + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL"
"""Made up, in a form that AG2 does not warn of."""

MODEL = "gpt-4o-mini"
"""A model whose price AG2 knows, so that it warns of nothing; the scripted server answers to any name."""


def llm_config(base_url: str, **entry: Any) -> dict[str, Any]:
    """A fresh model configuration."""
    return {"config_list": [{"model": MODEL, "api_key": KEY, "base_url": base_url} | entry]}


def in_pool(workers: int, function: Callable[[int], str], tasks: int) -> int:
    """Run the function for each task on a thread pool; how many gave an answer."""
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(function, number) for number in range(tasks)]
        return sum(bool(future.result()) for future in futures)


def shared_client() -> Any:
    """One httpx client for all agents: AG2 copies configurations deeply, so it has to survive that."""
    import httpx

    class SharedClient(httpx.Client):
        def __deepcopy__(self, _memo: object) -> SharedClient:
            return self

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return SharedClient(limits=limits, timeout=600)


def single_agent(config: Callable[[], dict[str, Any]]) -> Callable[[int], str]:
    """A task that makes its own agent and asks it once."""
    from autogen import AssistantAgent, UserProxyAgent

    def task(number: int) -> str:
        assistant = AssistantAgent(f"assistant_{number}", system_message=SYSTEM_MESSAGE, llm_config=config())
        user = UserProxyAgent("user", human_input_mode="NEVER", code_execution_config=False)
        chat = user.initiate_chat(assistant, message=prompt(number), max_turns=1, silent=True)
        return str(chat.summary)

    return task


SYSTEM_MESSAGE = "You are a careful clinician. Answer in one sentence."


def prompt(number: int) -> str:
    """The question of a task."""
    return f"Case {number}: fever, dry cough and joint pain for three days. What comes next?"

"""Lets the blocking tools of an attempt's agents run on threads that belong to the attempt.

AG2 runs a tool that is a plain function on a thread of anyio's, forty of them at most, which a stop neither reaches
nor waits for. The functions of an attempt's own agents are called on threads of the attempt instead: a stop is raised
in them, and the attempt has not ended before they are back.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope


def adopt(agent: Any, scope: AttemptScope) -> None:
    """Give an agent of this attempt tools that run within the attempt. Shared tools are left as they are."""
    agent.tools = [_adopted(tool, scope) for tool in agent.tools]


def _adopted(tool: Any, scope: AttemptScope) -> Any:
    members = getattr(tool, "_tools", None)
    if isinstance(members, dict):
        adopted = {name: _adopted(member, scope) for name, member in members.items()}
        if any(adopted[name] is not member for name, member in members.items()):
            tool = copy.copy(tool)
            tool._tools = adopted  # noqa: SLF001 - a copy's own
        return tool
    call: Any = getattr(getattr(tool, "model", None), "call", None)
    if not _runs_on_a_thread(call):
        return tool
    tool = copy.copy(tool)
    tool.model = copy.copy(tool.model)
    tool.model.call = _within(call.__wrapped__, scope)
    return tool


def _runs_on_a_thread(call: Any) -> bool:
    """Whether it is AG2's wrapper that takes a plain function to a thread."""
    code = getattr(call, "__code__", None)
    return (
        hasattr(call, "__wrapped__")
        and "run_in_threadpool" in getattr(code, "co_names", ())
        and call.__globals__.get("__name__") == "ag2.utils"
    )


def _within(function: Any, scope: AttemptScope) -> Any:
    @functools.wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        return await scope.run_blocking(functools.partial(function, *args, **kwargs))

    return called

"""Lets the tools of an attempt's agents run within the attempt.

A tool that is a plain function is run by AG2 on a thread of anyio's, forty of them at most, which a stop neither
reaches nor waits for. The functions of an attempt's own agents are called on threads of the attempt instead: a stop is
raised in them, and the attempt has not ended before they are back.

What a tool raises that is no `Exception`, such as `SystemExit`, would tear AG2's coroutines apart on its way through
asyncio. It is noted here, the conversation is cancelled in its place, and it is raised where the conversation was begun.
"""

from __future__ import annotations

import asyncio
import copy
import functools
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import TaskStopped

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope


_ENDED: Final = "ended by a tool"


class Breakdown:
    """What ended an attempt's conversation from within a tool, if anything did."""

    def __init__(self) -> None:
        """Nothing did."""
        self.error: BaseException | None = None

    def note(self, error: BaseException) -> None:
        """Take the first."""
        if self.error is None:
            self.error = error

    def take(self) -> BaseException:
        """What was noted; it is held no longer."""
        error, self.error = self.error, None
        return error or RuntimeError("nothing broke")


def adopt(agent: Any, scope: AttemptScope, breakdown: Breakdown) -> None:
    """Give an agent of this attempt tools that run within the attempt. Shared tools are left as they are."""
    agent.tools = [_adopted(tool, scope, breakdown) for tool in agent.tools]


def _adopted(tool: Any, scope: AttemptScope, breakdown: Breakdown) -> Any:
    members = getattr(tool, "_tools", None)
    if isinstance(members, dict):
        tool = copy.copy(tool)
        tool._tools = {name: _adopted(member, scope, breakdown) for name, member in members.items()}  # noqa: SLF001 - a copy's own
        return tool
    model: Any = getattr(tool, "model", None)
    call = getattr(model, "call", None)
    if call is None or getattr(model, "is_generator", False):
        return tool
    tool = copy.copy(tool)
    tool.model = copy.copy(model)
    tool.model.call = _within(call, scope, breakdown)
    return tool


def _within(call: Any, scope: AttemptScope, breakdown: Breakdown) -> Any:
    if _runs_on_a_thread(call):

        @functools.wraps(call)
        async def called(*args: Any, **kwargs: Any) -> Any:
            return await scope.run_blocking(functools.partial(on_a_thread, *args, **kwargs))

        def on_a_thread(*args: Any, **kwargs: Any) -> Any:
            try:
                return call.__wrapped__(*args, **kwargs)
            except (Exception, TaskStopped):
                raise
            except BaseException as error:
                breakdown.note(error)
            raise asyncio.CancelledError(_ENDED)

        return called

    @functools.wraps(call)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        try:
            return await call(*args, **kwargs)
        except (Exception, TaskStopped):
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            breakdown.note(error)
        raise asyncio.CancelledError(_ENDED)

    return awaited


def _runs_on_a_thread(call: Any) -> bool:
    """Whether it is AG2's wrapper that takes a plain function to a thread."""
    code = getattr(call, "__code__", None)
    return (
        hasattr(call, "__wrapped__")
        and "run_in_threadpool" in getattr(code, "co_names", ())
        and call.__globals__.get("__name__") == "ag2.utils"
    )

"""Runs the tools of an attempt's agents where they belong, and keeps the traceback of those that fail.

AG2 runs an async tool of a blocking chat on a bare thread of its own, where the attempt's context
variables and its stop signal are lost; and it turns every `Exception` of a tool into the text
"Error: ..." for the agent, which is kept as the policy here too: the agent is told, the other
tools' outputs survive.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ag2_parallel.events import AgentEvent
from ag2_parallel.frameworks.failures import traceback_text

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope

_log = logging.getLogger("ag2_parallel.tools")


def adopt(agent: Any, scope: AttemptScope, task_name: str) -> None:
    """Let an agent of this attempt run its tools within the attempt. Only the instance is changed."""
    agent._run_async_in_thread = scope.run_coroutine  # noqa: SLF001
    agent._function_map = _WatchedFunctions(agent._function_map, scope, task_name, agent.name)  # noqa: SLF001


def has_served(agent: Any) -> bool:
    """Whether an agent is, or was, an attempt's own: a factory made it for that, and somebody kept it."""
    return isinstance(agent._function_map, _WatchedFunctions)  # noqa: SLF001


class _WatchedFunctions(dict[str, Callable[..., Any]]):
    """An agent's functions by name; what is got from it to be called reports its failures."""

    __slots__ = ("_agent", "_scope", "_task")

    def __init__(self, functions: dict[str, Callable[..., Any]], scope: AttemptScope, task: str, agent: str) -> None:
        super().__init__(functions)
        self._scope = scope
        self._task = task
        self._agent = agent

    def get(self, name: str, default: Any = None) -> Any:
        """The function, watched; AG2 gets a function in this way when it is about to call it."""
        function = super().get(name, default)
        return self._watched(name, function) if callable(function) else function

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        async def finish(value: Awaitable[Any]) -> Any:
            try:
                return await value
            except Exception as error:
                self._report(name, error)
                raise

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def watched_async(*args: Any, **kwargs: Any) -> Any:
                return await finish(function(*args, **kwargs))

            return watched_async

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                value = function(*args, **kwargs)
            except Exception as error:
                self._report(name, error)
                raise
            return finish(value) if inspect.isawaitable(value) else value

        return watched

    def _report(self, name: str, error: Exception) -> None:
        text = traceback_text(error, self._scope.redactor)
        _log.info(
            'task "%s": tool "%s" of agent "%s" failed; the agent was told\n%s',
            self._task, name, self._agent, text,
            extra={"task": self._task, "tool": name},
        )  # fmt: skip
        if self._scope.observed:
            content = {"tool": name, "error": type(error).__name__, "traceback": text}
            self._scope.emit(AgentEvent, name="tool_failed", agent=self._agent, content=content)

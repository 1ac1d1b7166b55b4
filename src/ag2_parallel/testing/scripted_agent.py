"""An agent that needs neither AG2 nor a model."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from ag2_parallel.tasks import TaskContext

ScriptedReply: TypeAlias = "str | Callable[[TaskContext], Any] | Sequence[Any]"

_SLICE = 0.02
"""Seconds between two looks at the stop signal while it waits."""


class ScriptedAgent:
    """A task's `agent` for tests and very large runs: answers as it is told.

    One may serve any number of tasks at once: it keeps nothing but `calls`, and a copy of it is itself.

    Args:
        reply: A str; a function of the `TaskContext`; or a sequence, of which attempt 1 of a task gets the first
            item, attempt 2 the second, and later ones the last. An exception in the sequence is raised.
        delay: Seconds before the answer. A stop is honoured while it waits.
        error: Raised after `delay` in place of the answer.
    """

    def __init__(
        self, reply: ScriptedReply, *, delay: float = 0.0, error: BaseException | type[BaseException] | None = None
    ) -> None:
        if not isinstance(reply, str | Sequence) and not callable(reply):
            raise TypeError(
                f"a ScriptedAgent cannot reply with {type(reply).__name__}; give a str, a function or a sequence"
            )
        if isinstance(reply, Sequence) and not isinstance(reply, str) and not reply:
            raise ValueError("the reply of a ScriptedAgent is an empty sequence; give at least one answer")
        self.calls: list[tuple[str, int]] = []
        """Task name and attempt of every call, in the order in which they began."""
        self._reply = reply
        self._delay = delay
        self._error = error

    def run_task(self, ctx: TaskContext) -> Any:
        """Answer one attempt of a task."""
        self.calls.append((ctx.name, ctx.attempt))
        _wait(ctx, self._delay)
        if self._error is not None:
            raise _own(self._error)
        if isinstance(self._reply, str):
            return self._reply
        if callable(self._reply):
            return self._reply(ctx)
        answer = self._reply[min(ctx.attempt, len(self._reply)) - 1]
        if isinstance(answer, BaseException):
            raise _own(answer)
        return answer

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"ScriptedAgent({self._reply!r}, {len(self.calls)} calls)"


def _wait(ctx: TaskContext, seconds: float) -> None:
    """Wait so that a stop is seen soon."""
    ctx.check()
    end, never = time.monotonic() + seconds, threading.Event()
    while (left := end - time.monotonic()) > 0:
        never.wait(min(left, _SLICE))
        ctx.check()


def _own(error: BaseException | type[BaseException]) -> BaseException | type[BaseException]:
    """A copy of the error where it can be had: tasks that raise one object would mix up their tracebacks."""
    try:
        return copy.copy(error)
    except Exception:
        return error

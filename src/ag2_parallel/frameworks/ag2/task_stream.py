"""The stream that a task's conversation runs on: checkpoint, transcript, events, and quick subscriptions.

AG2 makes an argument model of pydantic's for each subscription of each ask, which is most of what an ask costs. Its
own subscribers take the event, or the event and the context, and need none: they are called as they are. Subscribers
of anybody else are made and called as AG2 does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ag2.events import ToolCallsEvent
from ag2.history import MemoryStorage
from ag2.stream import MemoryStream
from ag2.utils import AGENT_CONTEXT_DEPENDENCY_KEY, CONTEXT_OPTION_NAME, build_model

if TYPE_CHECKING:
    from ag2_parallel.frameworks.ag2.record import Record
    from ag2_parallel.ports import AttemptScope

_OURS = ("ag2.", "ag2_parallel.")
_Call = Callable[[Any, Any], Any]


class TurnsUsedUpError(Exception):
    """Raised in a conversation that has had as many answers as the task's `max_turns`."""


class TaskStorage(MemoryStorage):
    """Keeps the history of the task's stream, and of those that agents behind tools run on; tells of the latter."""

    def __init__(self, record: Record) -> None:
        """Nothing is kept yet."""
        super().__init__()
        self._record = record
        self.own: Any = None

    async def save_event(self, event: Any, context: Any) -> None:
        """Keep an event."""
        if context.stream.id != self.own:
            self._record.take(event, agent_of(context), in_conversation=False)
        await super().save_event(event, context)


class TaskStream(MemoryStream):
    """The stream of one attempt's conversation.

    Attributes:
        context: The conversation's own context, once there is one: its variables are the task's.
    """

    def __init__(self, scope: AttemptScope, record: Record, *, max_turns: int | None = None) -> None:
        """No conversation runs on it yet; it ends after `max_turns` answers."""
        self._scope = scope
        self._record = record
        self._max_turns = max_turns
        self._quick: dict[Any, tuple[Any, _Call, bool]] = {}
        self.context: Any = None
        storage = TaskStorage(record)
        super().__init__(storage)
        storage.own = self.id

    def subscribe(  # type: ignore[override] # the decorator's form is kept, its overloads are not
        self,
        func: Callable[..., Any] | None = None,
        *,
        interrupt: bool = False,
        sync_to_thread: bool = True,
        condition: Any = None,
    ) -> Any:
        """See `ag2.Stream.subscribe`."""
        if func is None:
            return lambda given: self.subscribe(
                given, interrupt=interrupt, sync_to_thread=sync_to_thread, condition=condition
            )
        sub_id = uuid4()
        call = _direct(func) or _modelled(func, sync_to_thread=sync_to_thread)
        self._quick[sub_id] = (condition, call, interrupt)
        return sub_id

    def unsubscribe(self, sub_id: Any) -> None:
        """See `ag2.Stream.unsubscribe`."""
        self._quick.pop(sub_id, None)

    async def send(self, event: Any, context: Any) -> None:
        """Take note of an event, stop the task here if it has to end, and hand the event on."""
        self.context = self.context or context
        self._record.take(event, agent_of(context), in_conversation=True)
        self._scope.check()
        if isinstance(event, ToolCallsEvent) and self._max_turns is not None and self._record.answers >= self._max_turns:
            raise TurnsUsedUpError(f"the conversation has had its {self._max_turns} answers")
        for interrupting in (True, False):
            for condition, call, interrupt in tuple(self._quick.values()):
                if interrupt is not interrupting or (condition and not condition(event)):
                    continue
                answer = await call(event, context)
                if interrupting:
                    if not answer:
                        return
                    event = answer


def agent_of(context: Any) -> str:
    """The name of the agent at work in a context."""
    return str(getattr(context.dependencies.get(AGENT_CONTEXT_DEPENDENCY_KEY), "name", "agent"))


def _direct(func: Callable[..., Any]) -> _Call | None:
    """How to call a subscriber of AG2's own, or None where it wants more than event and context."""
    if not inspect.iscoroutinefunction(func) or not (func.__module__ or "").startswith(_OURS):
        return None
    names = _parameters(getattr(func, "__func__", func))[1 if inspect.ismethod(func) else 0 :]
    if len(names) == 1:
        return lambda event, _context: func(event)
    return func if names[1:] in {("context",), ("ctx",)} else None


@lru_cache(maxsize=256)
def _parameters_of(code: Any) -> tuple[str, ...]:
    return tuple(code.co_varnames[: code.co_argcount])


def _parameters(function: Any) -> tuple[str, ...]:
    return _parameters_of(function.__code__)


def _modelled(func: Callable[..., Any], *, sync_to_thread: bool) -> _Call:
    model = build_model(func, sync_to_thread=sync_to_thread, serialize_result=False)

    async def call(event: Any, context: Any) -> Any:
        async with AsyncExitStack() as stack:
            return await model.asolve(
                event,
                cache_dependencies={},
                stack=stack,
                dependency_provider=context.dependency_provider,
                **{CONTEXT_OPTION_NAME: context},
            )

    return call

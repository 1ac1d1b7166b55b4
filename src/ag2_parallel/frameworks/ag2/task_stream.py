"""The stream that a task's conversation runs on: every event is noted, and is a checkpoint of the task.

To be imported once `ag2` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2.events import ToolCallsEvent
from ag2.history import MemoryStorage
from ag2.utils import AGENT_CONTEXT_DEPENDENCY_KEY

from ag2_parallel.frameworks.ag2.stream import FastStream

if TYPE_CHECKING:
    from ag2_parallel.frameworks.ag2.record import Record
    from ag2_parallel.ports import AttemptScope


class TurnsUsedUpError(Exception):
    """Raised in a conversation that has had as many answers as the task's `max_turns`."""


class TaskStorage(MemoryStorage):  # type: ignore[misc] # ag2 is not looked into
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


class TaskStream(FastStream):
    """The stream of one attempt's conversation.

    Attributes:
        context: The conversation's own context, once there is one: its variables are the task's.
    """

    def __init__(self, scope: AttemptScope, record: Record, *, max_turns: int | None = None) -> None:
        """No conversation runs on it yet; it ends after `max_turns` answers."""
        self._scope = scope
        self._record = record
        self._max_turns = max_turns
        self.context: Any = None
        storage = TaskStorage(record)
        super().__init__(storage)
        storage.own = self.id

    async def send(self, event: Any, context: Any) -> None:
        """Take note of an event, stop the task here if it has to end, and hand the event on."""
        self.context = self.context or context
        self._record.take(event, agent_of(context), in_conversation=True)
        self._scope.check()
        if isinstance(event, ToolCallsEvent) and self._is_used_up():
            raise TurnsUsedUpError(f"the conversation has had its {self._max_turns} answers")
        await super().send(event, context)

    def _is_used_up(self) -> bool:
        return self._max_turns is not None and self._record.answers >= self._max_turns


def agent_of(context: Any) -> str:
    """The name of the agent at work in a context."""
    return str(getattr(context.dependencies.get(AGENT_CONTEXT_DEPENDENCY_KEY), "name", "agent"))

"""What a run tells of itself: events for observers, and warnings for the log too."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ag2_parallel import events
from ag2_parallel.core import wording

if TYPE_CHECKING:
    from ag2_parallel.core import commands
    from ag2_parallel.core.broadcast import Broadcast
    from ag2_parallel.core.kept import Kept
    from ag2_parallel.results import ParallelTaskResult

_log = logging.getLogger("ag2_parallel")


class Notices:
    """Words for what happens to a whole run; on the engine loop.

    Attributes:
        why: What stopped the run, by its reason, where more is known than the reason says.
    """

    def __init__(self, broadcast: Broadcast) -> None:
        self.why: dict[str, str] = {}
        self._broadcast = broadcast

    def warn(self, message: str) -> None:
        """Something a user should know."""
        _log.warning("run %s: %s", self._broadcast.run_id, message)
        self._broadcast.emit(events.RunWarning, message=message)

    def stopping(self, command: commands.Stopping) -> None:
        """Nothing starts any more."""
        if command.reason == "budget":
            self.warn(f"nothing new starts: {self.why.get('budget', 'the budget is used up')}")
        self._broadcast.emit(events.RunStopping, reason=command.reason, stopped_running=command.stop_running)

    def tripped(self, command: commands.Tripped) -> None:
        """The breaker saw one cause too often."""
        if command.pause is None:
            self.why["breaker"] = wording.one_cause(command)
        self.warn(wording.tripped(command))

    def recovered(self, _command: commands.Recovered) -> None:
        """The breaker's probe succeeded."""
        self.warn("the task that was let through succeeded: the run goes on")

    def kept(self, kept: Kept) -> None:
        """A result of an earlier life stands."""
        self._broadcast.emit(events.TaskKept, task=kept.name, index=kept.index, status=str(kept.status))

    def finished(self, result: ParallelTaskResult) -> None:
        """A task's result is published."""
        self._broadcast.emit(
            events.TaskFinished,
            task=result.name,
            index=result.index,
            attempt=result.attempts or None,
            status=str(result.status),
            stop_reason=result.stop_reason,
            duration=result.duration,
            error=str(result.error) if result.error else None,
            usage=result.usage,
        )

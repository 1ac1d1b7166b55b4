"""The turn of a call that no limit is about: its answer comes from a cassette."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

    from ag2_parallel.gate.call_events import CallEvents
    from ag2_parallel.gate.failure import Failure
    from ag2_parallel.gate.turn import Turn
    from ag2_parallel.gate.wire import Head


class FreeTurn:
    """Stands where a `Turn` stands, and keeps nobody waiting.

    Attributes:
        refusal: None: nothing is refused.
    """

    refusal: Failure | None = None

    def __init__(self, events: CallEvents) -> None:
        self._events = events

    async def __aenter__(self) -> Self:
        """Let the call through."""
        self._events.queued()
        self._events.admitted(0.0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was held."""

    def leave(self) -> None:
        """Nothing was held."""

    unused = leave

    def head_arrived(self, status: int, headers: list[tuple[str, str]]) -> None:  # noqa: ARG002 - what was announced was then
        """The head of an answer is there."""
        self._events.first_byte(status)

    def heard(self, failure: Failure | None) -> None:
        """Nothing is paced."""

    async def raced(self, work: Coroutine[Any, Any, Head | None]) -> Head | None:
        """Do `work`."""
        return await work

    def copy(self) -> Turn | None:
        """No call is sent twice."""
        return None

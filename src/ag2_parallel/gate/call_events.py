"""The events of one model call, in the order in which they can come; nothing at all where nobody listens.

::

    queued ─► admitted ─► started ─► first byte ─► finished
       ├► refused            ├► hedged   └► throttled, retrying ─► queued ...
       └► cut ◄──────────────┘

The first two are told only where a limit was set or met.
    replayed, and nothing else, where the answer is a recorded one
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel import events

if TYPE_CHECKING:
    from ag2_parallel.gate.attempt_side import AttemptSide
    from ag2_parallel.gate.routes import Asked
    from ag2_parallel.usage import Usage

_log: Final = logging.getLogger("ag2_parallel")


class CallEvents:
    """Tells what happens to a call."""

    __slots__ = ("_number", "_request", "_side")

    def __init__(self, number: int, request: Asked, side: AttemptSide) -> None:
        self._number = number
        self._request = request
        self._side = side

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return self._side.owner.observes_calls()

    def _tell(self, event: type[events.Event], **fields: Any) -> None:
        if self._side.owner.observes_calls():
            self._side.owner.emit(event, call=self._number, endpoint=self._request.endpoint, **fields)

    def warn(self, message: str | None) -> None:
        """Something that the user should know of the run, if there is anything."""
        if message is not None:
            _log.warning("%s", message)
            self._side.owner.emit(events.RunWarning, message=message)

    def replayed(self, usage: Usage) -> None:
        """It was answered from a recording."""
        self._tell(events.ModelCallReplayed, model=self._request.model, usage=usage)

    def queued(self) -> None:
        """It stands before the limits."""
        self._tell(events.ModelCallQueued, model=self._request.model)

    def admitted(self, waited: float) -> None:
        """The limits let it through."""
        self._tell(events.ModelCallAdmitted, model=self._request.model, waited=waited)

    def refused(self, reason: str) -> None:
        """It is not sent."""
        self._tell(events.ModelCallRefused, model=self._request.model, reason=reason)

    def started(self, try_number: int) -> None:
        """A request is sent."""
        self._tell(events.ModelCallStarted, model=self._request.model, try_number=try_number)

    def first_byte(self, status: int) -> None:
        """The head of an answer has arrived."""
        self._tell(events.ModelCallFirstByte, status=status)

    def hedged(self, after: float) -> None:
        """A second copy is sent."""
        self._tell(events.ModelCallHedged, model=self._request.model, after=after)

    def throttled(self, pause: float, rate: float | None) -> None:
        """The server answered 429."""
        self._tell(events.ModelCallThrottled, pause=pause, rate=rate)

    def retrying(self, reason: str, delay: float) -> None:
        """A request failed and will be sent again."""
        self._tell(events.ModelCallRetrying, reason=reason, delay=delay)

    def cut(self, reason: str) -> None:
        """Its task was stopped."""
        self._tell(events.ModelCallCut, model=self._request.model, reason=reason)

    def finished(self, status: str, duration: float, usage: Usage) -> None:
        """It has ended."""
        self._tell(events.ModelCallFinished, model=self._request.model, status=status, duration=duration, usage=usage)

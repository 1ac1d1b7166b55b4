"""The admission of an engine's calls on its loop: futures and a timer around the pure queue."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ag2_parallel.gate.admission import Admission
from ag2_parallel.gate.estimate import AnswerLengths
from ag2_parallel.gate.routes import Routes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ag2_parallel.gate.admission import Ticket
    from ag2_parallel.gate.limits import Need
    from ag2_parallel.gate.routes import Asked, Way
    from ag2_parallel.gate.wishes import CallLimits


class Turnstile:
    """Where calls wait for limits; one for each gate. On the loop only.

    Attributes:
        routes: The limits of every call.
        lengths: What answers were like so far.
        now: The time that its limits go by: that of the loop's timers.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.routes = Routes()
        self.lengths = AnswerLengths()
        self._loop = loop
        self.now = loop.time
        self._admission = Admission()
        self._futures: dict[Ticket, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._advancing = False

    @property
    def waiting(self) -> int:
        """How many calls are waited for."""
        return len(self._futures)

    def way(self, request: Asked, limits: CallLimits, group: str | None, priority: int) -> Way:
        """The limits that apply to a call."""
        return self.routes.way(request, limits, group, priority)

    def ask(self, way: Way, need: Need, latest: float | None) -> Ticket:
        """Ask for admission; where the ticket waits, `wait` for it."""
        ticket = self._admission.ask(way.route, need, latest, self.now())
        if ticket.state == "waiting":
            self._futures[ticket] = self._loop.create_future()
            self._advance_soon()
        return ticket

    def ask_at_once(self, way: Way, need: Need) -> Ticket | None:
        """A ticket that is granted now, or None."""
        now = self.now()
        ticket = self._admission.ask(way.route, need, None, now)
        if ticket.state == "waiting":
            self._admission.leave(ticket)
        return ticket if ticket.state == "granted" else None

    async def wait(self, ticket: Ticket) -> None:
        """Until a ticket is granted or refused; a cut gives its place back."""
        future = self._futures.get(ticket)
        if future is None:
            return
        try:
            await future
        except asyncio.CancelledError:
            self._futures.pop(ticket, None)
            self._admission.leave(ticket)
            self._advance_soon()
            raise

    def leave(self, ticket: Ticket) -> None:
        """A call that was let through is not sent, or one that waits is not waited for any more."""
        self._futures.pop(ticket, None)
        self._admission.leave(ticket)
        self._changed()

    def done(self, ticket: Ticket, used: int | None) -> None:
        """A call has ended; it used so many tokens, or nobody knows."""
        self._admission.done(ticket, used, self.now())
        self._changed()

    async def known(self, ticket: Ticket) -> None:
        """See `Limiter`; here it is known at once."""

    def headers_came(self, way: Way, _ticket: Ticket, headers: Mapping[str, str], today: datetime) -> None:
        """The headers of an answer, by their names in lower case; `today` is the aware wall time."""
        if way.announced is not None:
            way.announced.heard(headers, self.now(), today)
            self._changed()

    def went_through(self, way: Way, ticket: Ticket) -> None:
        """A call was not refused."""
        way.pace.went_through(ticket.since, self.now())
        if way.window is not None:
            way.window.went_through()

    def passed(self, way: Way, count: int) -> None:
        """So many calls were sent and not refused that asked for nothing."""
        way.pace.passed(count, self.now())
        self._changed()

    def warning(self, limits: CallLimits) -> str | None:
        """See `Limiter`."""
        return self.routes.descriptors.warning(limits)

    def throttled(self, way: Way, ticket: Ticket, hint: float | None, initial: float) -> tuple[float, float | None]:
        """The server asked for fewer calls: who cannot go in time now is told at once; see `Limiter`."""
        now = self.now()
        if way.window is not None:
            way.window.refused(ticket.since, now)
        way.pace.refused(ticket.since, now, hint, initial)
        for late in self._admission.refuse_late(way.pace, now):
            self._tell(late)
        return max(0.0, way.pace.resumes_at - now), way.pace.rate

    def _changed(self) -> None:
        """A limit has learnt something: calls that wait may go."""
        if self._futures:
            self._advance_soon()

    def _advance_soon(self) -> None:
        """Once in a turn of the loop, whatever happens in it: hundreds may come or end in one."""
        if not self._advancing:
            self._advancing = True
            self._loop.call_soon(self._advance)

    def _advance(self) -> None:
        self._advancing = False
        for ticket in self._admission.advance(self.now()):
            self._tell(ticket)
        self._arm()

    def _tell(self, ticket: Ticket) -> None:
        future = self._futures.pop(ticket, None)
        if future is not None and not future.done():
            future.set_result(None)

    def _arm(self) -> None:
        wake = self._admission.wake_at
        if self._timer is not None:
            if self._timer.when() == wake:
                return
            self._timer.cancel()
            self._timer = None
        if wake is not None:
            self._timer = self._loop.call_at(wake, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._advance()

"""Who may send next: a queue before limits, as a pure state machine.

Theory of operation
===================

A call comes with its route: the limits that apply to it and its task's priority. It goes when all of
them let it, and takes from all in one step, or from none. The queue is in order of priority, then of
arrival. Calls of one route wait in one line, so only the first of each line is looked at:

    ask ──► lines, one for each route ── advance ──► granted ──► done
              └─ leave (cut)                            └─ leave (cut before it was sent)

A call that is held up by a limit holds up all that come after it at that limit, and nobody at the
others: a slow model does not stop a fast one. But a limit that lets it go is kept for it where it will
go so soon that another call would delay it (as backfilling job schedulers do), so a call that needs
two busy limits is not passed over for ever by calls that need one of them.

Nothing here reads a clock. `wake_at` says when `advance` has something to do by itself.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ag2_parallel.gate.rate import NOT_KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ag2_parallel.gate.limits import Limit, Need


_ROUNDING = 1e-9
"""Seconds by which sums of times may be off."""


@dataclass(eq=False, slots=True)
class Route:
    """The limits of some calls, and the line in which these wait.

    Attributes:
        limits: All that apply.
        priority: Their tasks'; higher goes first.
        line: Those that wait, and some that have left.
        waiting: How many wait.
        held_up_by: What last held up the first of the line.
    """

    limits: tuple[Limit, ...]
    priority: int = 0
    line: deque[Ticket] = field(default_factory=deque)
    waiting: int = 0
    held_up_by: Limit | None = None

    def first(self) -> Ticket | None:
        """The first of the line that still waits."""
        while self.line:
            if self.line[0].state == "waiting":
                return self.line[0]
            self.line.popleft()
        return None


@dataclass(eq=False, slots=True)
class Ticket:
    """One call before the limits, and past them.

    Attributes:
        route: Its route.
        need: What it takes.
        latest: The time after which it need not go any more; None: no such time.
        serial: Its place in the order of arrival.
        state: `waiting`, `granted`, `refused` or `gone`.
        since: When it came, then when it was let go.
        cause: What it waited for, or was refused for.
        until: For a refused one, when it could have gone at the earliest.
    """

    route: Route
    need: Need
    latest: float | None
    serial: int
    since: float
    state: str = "waiting"
    cause: Limit | None = None
    until: float = 0.0


class Admission:
    """The queue.

    Attributes:
        wake_at: When `advance` should be called, at the latest; None: only when something happens.
    """

    def __init__(self) -> None:
        self.wake_at: float | None = None
        self._serial = 0
        self._routes: dict[Route, None] = {}

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return sum(route.waiting for route in self._routes)

    def ask(self, route: Route, need: Need, latest: float | None, now: float) -> Ticket:
        """A call comes: its ticket is granted or refused at once, or waits."""
        self._serial += 1
        ticket = Ticket(route, need, latest, self._serial, now)
        if all(not limit.waiters and limit.ready_at(need, now) <= now + _ROUNDING for limit in route.limits):
            self._grant(ticket, now)
            return ticket
        if self._refuse_if_late(ticket, now):
            return ticket
        route.line.append(ticket)
        route.waiting += 1
        self._routes[route] = None
        for limit in route.limits:
            limit.queue(need, route.priority, 1)
        return ticket

    def advance(self, now: float) -> list[Ticket]:
        """Let go whoever may go now, and refuse who is next and cannot go in time any more: the tickets of both."""
        decided: list[Ticket] = []
        closed: set[Limit] = set()
        wake = NOT_KNOWN
        heads = [(-route.priority, first.serial, first) for route in self._routes if (first := route.first())]
        heapify(heads)
        while heads:
            _, _, ticket = heappop(heads)
            route = ticket.route
            if self._cannot_go_in_time(ticket):
                self._refuse(ticket)
                decided.append(ticket)
                self._push_first(route, heads)
                continue
            if not closed.isdisjoint(route.limits):
                route.held_up_by = next(limit for limit in route.limits if limit in closed)
                continue
            ready = self._look(ticket, now, closed)
            if ready > now:
                wake = min(wake, ready)
                continue
            self._depart(ticket)
            ticket.cause = ticket.cause or route.held_up_by
            self._grant(ticket, now)
            decided.append(ticket)
            self._push_first(route, heads)
        self.wake_at = None if wake == NOT_KNOWN else wake
        return decided

    def leave(self, ticket: Ticket) -> None:
        """A call is cut while it waits, or was let go and not sent: it gives its place or its share back."""
        if ticket.state == "waiting":
            self._depart(ticket)
        elif ticket.state == "granted":
            for limit in ticket.route.limits:
                limit.undo(ticket.need)
        ticket.state = "gone"

    def done(self, ticket: Ticket, used: int | None, now: float) -> None:
        """A call that was sent has ended; it used so many tokens, or nobody knows."""
        if ticket.state == "granted":
            ticket.state = "gone"
            for limit in ticket.route.limits:
                limit.done(ticket.need, used, now)

    def refuse_late(self, limit: Limit, now: float) -> list[Ticket]:
        """`limit` has become tighter: refuse those in the queue that cannot go in time any more."""
        late = []
        for route in [route for route in self._routes if limit in route.limits]:
            for ticket in list(route.line):
                if ticket.state == "waiting" and self._too_late(ticket, (limit,), now):
                    self._refuse(ticket)
                    late.append(ticket)
        return late

    def _look(self, ticket: Ticket, now: float, closed: set[Limit]) -> float:
        """When a call may go. Where that is later than now, the limits it keeps from others are closed."""
        times = [(limit.ready_at(ticket.need, now), limit) for limit in ticket.route.limits]
        ready, last = max(times, key=lambda time: time[0])
        if ready <= now + _ROUNDING:
            return now
        ticket.cause = ticket.route.held_up_by = last
        for at, limit in times:
            if at > now + _ROUNDING or ready - now <= limit.kept_for(ticket.need):
                closed.add(limit)
        return ready

    def _refuse_if_late(self, ticket: Ticket, now: float) -> bool:
        late = self._too_late(ticket, ticket.route.limits, now)
        if late:
            ticket.state = "refused"
        return late

    @staticmethod
    def _too_late(ticket: Ticket, limits: Iterable[Limit], now: float) -> bool:
        for limit in limits:
            at = limit.not_before(ticket.need, ticket.route.priority, now)
            if at > (now + limit.patience if ticket.latest is None else ticket.latest):
                ticket.cause, ticket.until = limit, at
                return True
        return False

    @staticmethod
    def _cannot_go_in_time(ticket: Ticket) -> bool:
        """Whether the first of a line has more to wait for than when it came: answers used more than was thought."""
        if ticket.latest is None:
            return False
        for limit in ticket.route.limits:
            at = limit.earliest(ticket.need)
            if at > ticket.latest:
                ticket.cause, ticket.until = limit, at
                return True
        return False

    def _refuse(self, ticket: Ticket) -> None:
        self._depart(ticket)
        ticket.state = "refused"

    @staticmethod
    def _push_first(route: Route, heads: list[tuple[int, int, Ticket]]) -> None:
        if (first := route.first()) is not None:
            heappush(heads, (-route.priority, first.serial, first))

    def _depart(self, ticket: Ticket) -> None:
        """A ticket stops waiting."""
        route = ticket.route
        ticket.state = "gone"
        route.waiting -= 1
        for limit in route.limits:
            limit.queue(ticket.need, route.priority, -1)
        if not route.waiting:
            route.line.clear()
            route.held_up_by = None
            del self._routes[route]

    @staticmethod
    def _grant(ticket: Ticket, now: float) -> None:
        ticket.state, ticket.since = "granted", now
        for limit in ticket.route.limits:
            limit.take(ticket.need, now)

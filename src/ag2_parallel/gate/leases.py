"""Limits that are kept in another process: calls ask for leases there. See `lease_office`."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ag2_parallel.gate.estimate import AnswerLengths
from ag2_parallel.gate.routes import KEY_HEADERS
from ag2_parallel.policies import RateLimit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ag2_parallel.gate.limits import Need
    from ag2_parallel.gate.routes import Asked
    from ag2_parallel.gate.wishes import CallLimits

_TELLING: Final = ("x-ratelimit-", "anthropic-ratelimit-")
"""How headers begin that say something about limits."""

_IDLE: Final = 1.0
"""Seconds after which a standing lease that serves no call goes back."""


class OfficeWire(Protocol):
    """How a child speaks to the office."""

    def ask(self, course: RemoteCourse, ticket: int, need: Need, patience: float | None) -> None:
        """A call wants to go."""

    def done(self, ticket: int, used: int | None, *, went_through: bool) -> None:
        """It has ended."""

    def leave(self, ticket: int) -> None:
        """It does not go after all."""

    def passed(self, ticket: int, count: int) -> None:
        """So many calls went through on a standing lease."""

    def throttled(self, ticket: int, hint: float | None, initial: float, took: float) -> None:
        """Its server asked for fewer, `took` seconds after it was sent."""

    def headers_came(self, ticket: int, headers: dict[str, str]) -> None:
        """What its server announces."""


class RemoteCourse(NamedTuple):
    """What the office must know to find the limits of a call."""

    limits: CallLimits
    endpoint: str
    mark: str
    model: str | None
    group: str | None
    priority: int
    counts_tokens: bool
    listens: bool
    limited: bool

    @property
    def run(self) -> str:
        """The run whose limits these are."""
        return self.limits.run


class _Cause(NamedTuple):
    name: str


@dataclass(eq=False, slots=True)
class RemotePermit:
    """A lease as its call sees it; see `Permit`."""

    number: int
    need: Need
    course: RemoteCourse
    since: float
    future: asyncio.Future[None] | None = None
    state: str = "asking"
    until: float = 0.0
    cause: _Cause | None = None
    free: bool = False
    went_through: bool = False


@dataclass(eq=False, slots=True)
class _Standing:
    """A lease that serves one call after another."""

    number: int
    passed: int = 0
    idle_since: float = 0.0


class Leases:
    """The limits as a child sees them: a `Limiter`. On the loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wire: OfficeWire) -> None:
        self.lengths = AnswerLengths()
        self.now = loop.time
        self._loop = loop
        self._wire = wire
        self._numbers = itertools.count(1)
        self._open: dict[int, RemotePermit] = {}
        self._standing: dict[int, _Standing] = {}
        self._idle: dict[int, list[_Standing]] = {}  # by the identity of a course, each of which there is once
        self._courses: dict[tuple[Any, ...], RemoteCourse] = {}
        self._marks: dict[str, str] = {}

    # ---- for a call

    def way(self, request: Asked, limits: CallLimits, group: str | None, priority: int) -> RemoteCourse:
        """See `Limiter`."""
        mark = self._mark(request)
        key = (limits, request.endpoint, mark, request.model, group, priority)
        found = self._courses.get(key)
        if found is None:
            listens = limits.rate_limits == "auto"
            own = [each for each in limits.rate_limits if isinstance(each, RateLimit)]
            found = self._courses[key] = RemoteCourse(
                *key,
                counts_tokens=listens or any(each.tokens is not None for each in own),
                listens=listens,
                limited=listens or bool(own) or limits.adaptive,
            )
        return found

    def _mark(self, request: Asked) -> str:
        value = next((value for name, value in request.headers if name.lower() in KEY_HEADERS), None)
        if value is None:
            return ""
        mark = self._marks.get(value)
        if mark is None:
            mark = self._marks[value] = hashlib.blake2b(value.encode(), digest_size=8).hexdigest()
        return mark

    def ask(self, way: RemoteCourse, need: Need, latest: float | None) -> RemotePermit:
        """See `Limiter`."""
        now = self.now()
        if idle := self._idle.get(id(way)):
            permit = RemotePermit(idle.pop().number, need, way, now, state="granted")
            self._open[permit.number] = permit
            return permit
        permit = RemotePermit(next(self._numbers), need, way, now, self._loop.create_future())
        self._open[permit.number] = permit
        self._wire.ask(way, permit.number, need, None if latest is None else latest - now)
        return permit

    def ask_at_once(self, way: RemoteCourse, need: Need) -> RemotePermit | None:
        """See `Limiter`. Where there are limits it is not known in time, so the answer is no."""
        if way.limited:
            return None
        return RemotePermit(0, need, way, self.now(), state="granted", free=True)

    async def known(self, ticket: RemotePermit) -> None:
        """See `Limiter`."""
        await self._told(ticket)

    async def wait(self, ticket: RemotePermit) -> None:
        """See `Limiter`."""
        if ticket.state == "waiting":
            ticket.future = self._loop.create_future()
            await self._told(ticket)

    async def _told(self, ticket: RemotePermit) -> None:
        assert ticket.future is not None
        try:
            await ticket.future
        except asyncio.CancelledError:
            self.leave(ticket)
            raise

    def leave(self, ticket: RemotePermit) -> None:
        """See `Limiter`."""
        self._over(ticket, None, sent=False)

    def done(self, ticket: RemotePermit, used: int | None) -> None:
        """See `Limiter`."""
        self._over(ticket, used, sent=True)

    def _over(self, ticket: RemotePermit, used: int | None, *, sent: bool) -> None:
        """A call needs its lease no more."""
        ticket.state = "gone"
        if self._open.pop(ticket.number, None) is None:
            return
        standing = self._standing.get(ticket.number)
        if standing is not None:
            standing.passed += ticket.went_through
            standing.idle_since = self.now()
            self._idle.setdefault(id(ticket.course), []).append(standing)
        elif sent:
            self._wire.done(ticket.number, used, went_through=ticket.went_through)
        else:
            self._wire.leave(ticket.number)

    def headers_came(
        self, _way: RemoteCourse, ticket: RemotePermit, headers: Mapping[str, str], _today: datetime
    ) -> None:
        """See `Limiter`."""
        telling = {name: value for name, value in headers.items() if name.startswith(_TELLING)}
        self._wire.headers_came(ticket.number, telling)

    def went_through(self, _way: RemoteCourse, ticket: RemotePermit) -> None:
        """See `Limiter`."""
        ticket.went_through = True

    def warning(self, _limits: CallLimits) -> None:
        """See `Limiter`; the office tells of the system's limits."""

    def throttled(
        self, _way: RemoteCourse, ticket: RemotePermit, hint: float | None, initial: float
    ) -> tuple[float, float | None]:
        """See `Limiter`; the pace is known in the office alone."""
        self._stop_standing(ticket.number)
        self._wire.throttled(ticket.number, hint, initial, self.now() - ticket.since)
        return hint if hint is not None else initial, None

    def tidy(self) -> None:
        """Tell what went through on standing leases, and give back those that are not needed any more."""
        latest = self.now() - _IDLE
        for standing in list(self._standing.values()):
            self._tell_passed(standing)
            if standing.number not in self._open and standing.idle_since < latest:
                self.revoked(standing.number)

    def _tell_passed(self, standing: _Standing) -> None:
        if standing.passed:
            self._wire.passed(standing.number, standing.passed)
            standing.passed = 0

    def _stop_standing(self, number: int) -> _Standing | None:
        """A lease serves no further call."""
        standing = self._standing.pop(number, None)
        if standing is not None:
            self._tell_passed(standing)
        return standing

    # ---- from the office

    def granted(self, number: int, held_by: str | None, *, standing: bool = False) -> None:
        """A call may go, and if it is standing others may go after it."""
        if standing and number in self._open:
            self._standing[number] = _Standing(number)
        self._settle(number, "granted", held_by)

    def revoked(self, number: int) -> None:
        """A standing lease serves no further call: it goes back with the one it serves, or now."""
        standing = self._stop_standing(number)
        if standing is None or number in self._open:
            return
        for idle in self._idle.values():
            if standing in idle:
                idle.remove(standing)
        self._wire.leave(number)

    def queued(self, number: int) -> None:
        """A call waits."""
        self._settle(number, "waiting", None)

    def denied(self, number: int, held_by: str, wait: float) -> None:
        """A call cannot go in time."""
        permit = self._settle(number, "refused", held_by)
        if permit is not None:
            permit.until = self.now() + wait
            del self._open[number]

    def _settle(self, number: int, state: str, held_by: str | None) -> RemotePermit | None:
        permit = self._open.get(number)
        if permit is not None:
            permit.state = state
            permit.since = self.now()
            permit.cause = _Cause(held_by) if held_by is not None else None
            if permit.future is not None and not permit.future.done():
                permit.future.set_result(None)
        return permit

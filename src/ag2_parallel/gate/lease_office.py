"""Limits that hold over several processes: they are kept in one, and each call of the others asks for a lease.

    child                                          parent
    Call ─► Turn ─► Leases.ask ──────── Ask ─────► LeaseOffice ─► Turnstile
                        ▲  ◄── Granted/Queued/Denied ──┘
                        └─ done, leave, throttled ─────► as if it were a call of this process

Where nothing limits the calls of an endpoint, nor what they may cost, and a hundred were answered in a row, a lease is
standing: its holder uses it for one call after another, tells from time to time how many went through, and gives it
back when it has lain idle. As soon as the server asks for fewer calls, whoever it asked, all standing leases of the
endpoint are revoked, and every call asks again.

Neither knows the wire: they are told what to send with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ag2_parallel.gate.limits import Need
from ag2_parallel.gate.turnstile import Turnstile

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Hashable, Mapping
    from datetime import datetime

    from ag2_parallel.gate.admission import Ticket
    from ag2_parallel.gate.routes import Way
    from ag2_parallel.gate.wishes import CallLimits


class Wish(Protocol):
    """A call that asks for a lease; the message of the wire has these."""

    @property
    def ticket(self) -> int: ...  # noqa: D102 - named after what they are
    @property
    def endpoint(self) -> str: ...  # noqa: D102
    @property
    def mark(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str | None: ...  # noqa: D102
    @property
    def group(self) -> str | None: ...  # noqa: D102
    @property
    def priority(self) -> int: ...  # noqa: D102
    @property
    def tokens(self) -> int: ...  # noqa: D102
    @property
    def sure(self) -> int: ...  # noqa: D102
    @property
    def patience(self) -> float | None: ...  # noqa: D102


class Reply(Protocol):
    """How a holder is told what became of a wish."""

    def granted(self, ticket: int, held_by: str | None, *, standing: bool) -> None:
        """It may go, and if it is standing others may go after it."""

    def revoked(self, ticket: int) -> None:
        """What was standing is so no more."""

    def queued(self, ticket: int) -> None:
        """It waits."""

    def denied(self, ticket: int, held_by: str, wait: float) -> None:
        """It cannot go in time, but in `wait` seconds at the earliest."""


@dataclass(eq=False, slots=True)
class _Lease:
    way: Way
    ticket: Ticket
    reply: Reply
    standing: bool = False
    waiter: asyncio.Task[None] | None = None


class LeaseOffice:
    """Keeps the limits for calls of other processes. On the loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turnstile = Turnstile(loop)
        self._leases: dict[Hashable, dict[int, _Lease]] = {}

    def ask(self, holder: Hashable, wish: Wish, limits: CallLimits, reply: Reply, *, may_stand: bool = True) -> None:
        """A call of `holder` wants to go; `may_stand` says whether others may go after it without asking."""
        turnstile = self._turnstile
        way = turnstile.way(_Stranger(wish), limits, wish.group, wish.priority)
        latest = None if wish.patience is None else turnstile.now() + wish.patience
        ticket = turnstile.ask(way, Need(wish.tokens, wish.sure), latest)
        lease = _Lease(way, ticket, reply, standing=may_stand and not way.limited)
        self._leases.setdefault(holder, {})[wish.ticket] = lease
        if ticket.state == "waiting":
            reply.queued(wish.ticket)
            lease.waiter = self._loop.create_task(self._wait(holder, wish.ticket, lease))
        else:
            self._tell(holder, wish.ticket, lease)

    async def _wait(self, holder: Hashable, number: int, lease: _Lease) -> None:
        await self._turnstile.wait(lease.ticket)
        lease.waiter = None
        self._tell(holder, number, lease)

    def _tell(self, holder: Hashable, number: int, lease: _Lease) -> None:
        ticket = lease.ticket
        held_by = ticket.cause.name if ticket.cause is not None else None
        if ticket.state == "granted":
            lease.standing = lease.standing and lease.way.pace.is_open(self._turnstile.now())
            lease.reply.granted(number, held_by, standing=lease.standing)
        else:
            self._take(holder, number)
            lease.reply.denied(number, held_by or "a limit", ticket.until - self._turnstile.now())

    def leave(self, holder: Hashable, number: int) -> None:
        """A call does not wait any more, or was let go and not sent."""
        lease = self._take(holder, number)
        if lease is not None:
            self._give_up(lease)

    def _give_up(self, lease: _Lease) -> None:
        if lease.waiter is not None:
            lease.waiter.cancel()
        self._turnstile.leave(lease.ticket)

    def done(self, holder: Hashable, number: int, used: int | None, *, went_through: bool) -> None:
        """A call that was let go has ended."""
        lease = self._take(holder, number)
        if lease is not None:
            if went_through:
                self._turnstile.went_through(lease.way, lease.ticket)
            self._turnstile.done(lease.ticket, used)

    def passed(self, holder: Hashable, number: int, count: int) -> None:
        """So many calls went through on a standing lease."""
        lease = self._leases.get(holder, {}).get(number)
        if lease is not None:
            self._turnstile.passed(lease.way, count)

    def throttled(self, holder: Hashable, number: int, hint: float | None, initial: float, took: float) -> None:
        """The server asked for fewer calls, `took` seconds after the refused one was sent."""
        lease = self._leases.get(holder, {}).get(number)
        if lease is None:
            return
        if lease.standing:  # it was granted for an earlier call
            lease.ticket.since = self._turnstile.now() - took
        self._turnstile.throttled(lease.way, lease.ticket, hint, initial)
        for leases in self._leases.values():
            for each, other in leases.items():
                if other.standing and other.way.pace is lease.way.pace:
                    other.standing = False
                    other.reply.revoked(each)

    def headers_came(self, holder: Hashable, number: int, headers: Mapping[str, str], today: datetime) -> None:
        """What a server announces."""
        lease = self._leases.get(holder, {}).get(number)
        if lease is not None:
            self._turnstile.headers_came(lease.way, lease.ticket, headers, today)

    def lost(self, holder: Hashable) -> None:
        """A holder has gone: its leases are given back. Calls that were let go may have been sent, and count."""
        leases = self._leases.pop(holder, {}).values()
        for lease in leases:  # first those that wait, or they would get what the others give back
            if lease.waiter is not None:
                self._give_up(lease)
        for lease in leases:
            self._turnstile.done(lease.ticket, None)

    def _take(self, holder: Hashable, number: int) -> _Lease | None:
        return self._leases.get(holder, {}).pop(number, None)


class _Stranger:
    """A call of another process as the routes see it."""

    def __init__(self, wish: Wish) -> None:
        self.endpoint = wish.endpoint
        self.model = wish.model
        self.headers = [("authorization", wish.mark)] if wish.mark else []

    def estimated_tokens(self) -> int:
        return 0

    def answer_cap(self) -> int | None:
        return None

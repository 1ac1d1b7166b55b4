"""Model calls of worker processes before the limits: from the wire to whoever keeps them, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from ag2_parallel.backends import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

PERMIT_MESSAGES = (wire.Ask, wire.Done, wire.Passed, wire.GaveUp, wire.Throttled, wire.HeadersCame)


class Office(Protocol):
    """Keeps the limits for calls of other processes. A holder is the process a call is made in."""

    def ask(self, holder: Any, wish: Any, limits: Any, reply: Any, *, may_stand: bool) -> None:
        """A call wants to go; `reply` is told, also whether others may go after it without asking."""

    def leave(self, holder: Any, number: int) -> None:
        """A call does not wait any more, or was let go and not sent."""

    def done(self, holder: Any, number: int, used: int | None, *, went_through: bool) -> None:
        """A call that was let go has ended."""

    def passed(self, holder: Any, number: int, count: int) -> None:
        """So many calls went through on a standing lease."""

    def throttled(self, holder: Any, number: int, hint: float | None, initial: float, took: float) -> None:
        """Its server asked for fewer calls."""

    def headers_came(self, holder: Any, number: int, headers: Mapping[str, str], today: datetime) -> None:
        """What its server announces."""

    def lost(self, holder: Any) -> None:
        """A holder has gone: what it had is given back."""


class Limited(Protocol):
    """A run, whose calls have limits."""

    @property
    def limits(self) -> Any:
        """Those that its runner was given."""

    @property
    def has_budget(self) -> bool:
        """Whether a call may be refused for what those before it used: it asks, so that it is told of them first."""


class Sends(Protocol):
    """A process that can be told something."""

    def send(self, message: object, /) -> None:
        """Tell it."""


class Permits:
    """Asks the office for what processes ask."""

    def __init__(self, office: Office) -> None:
        self._office = office

    def heard(self, process: Sends, message: Any, runs: Mapping[str, Limited]) -> None:
        """A process said something about a permit."""
        office = self._office
        match message:
            case wire.Ask() if message.run in runs:
                run = runs[message.run]
                office.ask(process, message, run.limits, _Reply(process), may_stand=not run.has_budget)
            case wire.Ask():
                process.send(wire.Denied(message.ticket, "the end of the run", 0.0))
            case wire.Done():
                office.done(process, message.ticket, message.used, went_through=message.went_through)
            case wire.Passed():
                office.passed(process, message.ticket, message.count)
            case wire.GaveUp():
                office.leave(process, message.ticket)
            case wire.Throttled():
                office.throttled(process, message.ticket, message.hint, message.initial, message.took)
            case _:
                office.headers_came(process, message.ticket, message.headers, datetime.now(UTC))

    def lost(self, process: Sends) -> None:
        """A process has gone: its permits are given back."""
        self._office.lost(process)


class _Reply:
    """Tells a process what became of its calls."""

    __slots__ = ("_process",)

    def __init__(self, process: Sends) -> None:
        self._process = process

    def granted(self, ticket: int, held_by: str | None, *, standing: bool) -> None:
        self._process.send(wire.Granted(ticket, held_by, standing))

    def revoked(self, ticket: int) -> None:
        self._process.send(wire.Revoked(ticket))

    def queued(self, ticket: int) -> None:
        self._process.send(wire.Queued(ticket))

    def denied(self, ticket: int, held_by: str, wait: float) -> None:
        self._process.send(wire.Denied(ticket, held_by, wait))

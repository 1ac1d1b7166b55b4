"""One try's turn at the limits: `async with` it, and what it reserved is settled whatever happens inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import httpx

from ag2_parallel.gate.failure import Failure, refused
from ag2_parallel.gate.limits import NOTHING, Need
from ag2_parallel.gate.retry import Outcome

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.call_events import CallEvents
    from ag2_parallel.gate.limiter import Permit
    from ag2_parallel.gate.meter import CallTally
    from ag2_parallel.gate.routes import Asked
    from ag2_parallel.gate.wire import Head

_OVERLOADED: Final = frozenset({429, 529})
"""Statuses that ask for fewer requests; 529 is Anthropic's."""


class NotAdmittedError(httpx.TransportError):
    """Raised where limits do not let a call be sent before its task's deadline."""

    kind = "rate_limit"


class Turn:
    """The time from asking to be let through until the try has ended.

    Attributes:
        refusal: Why the call cannot be sent in time, or None.
    """

    def __init__(self, request: Asked, attempt: GatedAttempt, tally: CallTally, events: CallEvents) -> None:
        """Nothing is asked yet."""
        self.refusal: Failure | None = None
        self._request = request
        self._attempt = attempt
        self._tally = tally
        self._events = events
        self._turnstile = attempt.shared.turnstile
        self._way = self._turnstile.way(request, attempt.side.limits, attempt.side.group, attempt.side.priority)
        self._ticket: Permit | None = None
        self._heard = False
        self._used: int | None = None
        self._spent = (0, 0, 0)

    async def __aenter__(self) -> Self:
        """Wait until every limit lets the call through."""
        attempt, way = self._attempt, self._way
        remaining, now = attempt.side.owner.patience(), self._turnstile.now
        asked = now()
        need = self._need() if way.counts_tokens else NOTHING
        ticket = self._turnstile.ask(way, need, None if remaining is None else asked + remaining)
        if ticket.state == "asking":
            await self._turnstile.known(ticket)
        told = way.limited or ticket.state != "granted"  # nobody is told of limits that nobody set or met
        if told:
            self._events.queued()
        if ticket.state == "waiting":
            self._warn_of_few_files()
            try:
                with attempt.waits(ticket.cause.name if ticket.cause is not None else "a limit"):
                    await self._turnstile.wait(ticket)
            finally:
                self._warn_of_few_files()
                if ticket.cause is not None:
                    attempt.side.waited_for(ticket.cause.name, now() - asked)
        if ticket.state == "refused":
            self.refusal = self._refused(ticket, remaining)
            return self
        self._ticket = ticket
        self._spent = self._tokens_so_far()
        if told:
            self._events.admitted(now() - asked)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give back the place, and what was reserved and not used."""
        self.leave()

    def leave(self) -> None:
        """The same, where nothing was awaited in between."""
        if self._ticket is not None:
            self._turnstile.done(self._ticket, self._used)
            self._ticket = None

    def head_arrived(self, status: int, headers: list[tuple[str, str]]) -> None:
        """The head of an answer is there."""
        self._events.first_byte(status)
        if self._way.listens and self._ticket is not None:
            by_name = {name.lower(): value for name, value in headers}
            self._turnstile.headers_came(self._way, self._ticket, by_name, self._attempt.shared.clock.now())

    def unused(self) -> None:
        """The call is not sent after all."""
        if self._ticket is not None:
            self._turnstile.leave(self._ticket)
            self._ticket = None

    def heard(self, failure: Failure | None) -> None:
        """The try has ended: with an answer (None), or with a failure. Only the first word counts."""
        if self._ticket is None or self._heard:
            return
        self._heard = True
        way = self._way
        if failure is not None and failure.outcome.status in _OVERLOADED and failure.outcome.kind != "quota":
            self._throttled(self._ticket, failure)
            return
        if failure is None or failure.outcome.status is not None:
            self._turnstile.went_through(way, self._ticket)
        if way.counts_tokens:
            self._count_tokens(failure)
        if failure is None and self._attempt.side.limits.hedge_after == "p95":
            seconds = self._turnstile.now() - self._ticket.since
            self._attempt.shared.answer_times.note(self._request.endpoint, self._request.model, seconds)

    def copy(self) -> Turn | None:
        """The turn of a second request beside this one; None where limits would make it wait, or the budget is used up."""
        assert self._ticket is not None
        spending = self._attempt.side.spending
        if spending is not None and spending.used_up() is not None:
            return None
        ticket = self._turnstile.ask_at_once(self._way, self._ticket.need)
        if ticket is None:
            return None
        other = Turn(self._request, self._attempt, self._tally, self._events)
        other._ticket, other._spent = ticket, other._tokens_so_far()
        return other

    async def raced(self, work: Coroutine[Any, Any, Head | None]) -> Head | None:
        """Do `work`, one of two requests: a server that asks for fewer is heard, whichever of the two counts."""
        head = await work
        if head is not None and head.status in _OVERLOADED:
            self.heard(refused(head, self._attempt.shared.clock.now()))
        return head

    async def around(self, work: Coroutine[Any, Any, Head | None]) -> Head | None:
        """The same in a turn that is over then."""
        try:
            return await self.raced(work)
        finally:
            self.leave()

    def _warn_of_few_files(self) -> None:
        self._events.warn(self._turnstile.warning(self._attempt.side.limits))

    def _throttled(self, ticket: Permit, failure: Failure) -> None:
        self._used = 0  # what is refused is not counted
        initial = self._attempt.side.retry.initial
        pause, rate = self._turnstile.throttled(self._way, ticket, failure.outcome.hint, initial)
        self._events.throttled(pause, rate)

    def _need(self) -> Need:
        request = self._request
        sure = request.estimated_tokens()
        return Need(sure + self._turnstile.lengths.guess(request.endpoint, request.model, request.answer_cap()), sure)

    def _tokens_so_far(self) -> tuple[int, int, int]:
        return self._tally.prompt, self._tally.completion, self._tally.unreported

    def _count_tokens(self, failure: Failure | None) -> None:
        before, now = self._spent, self._tokens_so_far()
        prompt, completion, unreported = (late - early for late, early in zip(now, before, strict=True))
        if prompt or completion:
            self._used = prompt + completion
            self._turnstile.lengths.learn(self._request.endpoint, self._request.model, completion)
        elif failure is not None and not unreported:
            self._used = 0  # it was not sent, or answered with an error

    def _refused(self, ticket: Permit, remaining: float | None) -> Failure:
        assert ticket.cause is not None
        wait = max(0.0, ticket.until - self._turnstile.now())
        left = (
            "is not waited for that long" if remaining is None else f"and its task has {max(remaining, 0):.1f} s left"
        )
        message = (
            f"the call was not sent: it would have to wait {wait:.1f} s for {ticket.cause.name}, {left}; "
            "give the task more time, use fewer workers, or raise the limit"
        )
        self._events.refused(message)
        outcome = Outcome(kind="rate_limit", transient=False, reason="a limit")
        return Failure(outcome, error=NotAdmittedError(message))

"""One attempt's access to model servers: its clients, its count, its cut."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ag2_parallel.gate.call import Call, Terms
from ag2_parallel.gate.meter import Meter
from ag2_parallel.gate.prices import fixed_price
from ag2_parallel.gate.sync_client import GateClient
from ag2_parallel.gate.through import ThroughClient

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    import httpx

    from ag2_parallel.gate.hedging import AnswerTimes
    from ag2_parallel.gate.pool import Pool
    from ag2_parallel.gate.prices import Price, PriceTable
    from ag2_parallel.gate.request import ModelRequest
    from ag2_parallel.gate.turnstile import Turnstile
    from ag2_parallel.gate.wishes import CallLimits
    from ag2_parallel.policies import RetryPolicy
    from ag2_parallel.ports import Clock
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all attempts of an engine share.

    Attributes:
        loop: The engine loop.
        post: Runs a function on the loop, soon; safe from any thread.
        spawn: Runs a blocking function on a daemon thread.
        clock: Where time comes from.
        draw: Gives a number from 0 to 1.
        pool: Sends requests.
        prices: Prices by model.
        no_usage: Endpoints that refuse a request for the usage of a stream.
        turnstile: Where calls wait for limits.
        answer_times: How long answers took, for hedging.
        calls: The calls on the loop.
        closed: Whether the gate has closed.
    """

    loop: asyncio.AbstractEventLoop
    post: Callable[[Callable[[], None]], None]
    spawn: Callable[[Callable[[], None]], None]
    clock: Clock
    draw: Callable[[], float]
    pool: Pool
    prices: PriceTable
    no_usage: set[str]
    turnstile: Turnstile
    answer_times: AnswerTimes
    calls: set[Call]
    closed: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSide:
    """What the gate may ask of an attempt and tell it; see `Gate.open_attempt`."""

    retry: RetryPolicy
    redactor: Redactor
    remaining: Callable[[], float | None]
    check_call: Callable[[], None]
    alive: Callable[[], None]
    waiting: Callable[[bool], None]
    limits: CallLimits
    group: str | None
    priority: int
    waited_for: Callable[[str, float], None]
    emit: Callable[..., None]
    observed: Callable[[], bool]


class GatedAttempt:
    """One attempt's access to model servers; the gate's `ports.AttemptGate`.

    Attributes:
        was_cut: Whether a cut ended a call in flight.
    """

    def __init__(self, shared: Shared, side: AttemptSide) -> None:
        self.was_cut = False
        self.shared = shared
        self.side = side
        self.meter = Meter()
        self._cut: str | None = None
        self._in_flight: set[Call] = set()
        self._numbers = itertools.count(1)
        self._waits = 0
        self._waited: tuple[float, float | None] = (0.0, None)

    def http_client(
        self, *, last_entry: bool = True, price: tuple[float, float] | None = None, through: httpx.Client | None = None
    ) -> httpx.Client:
        """A client whose requests go through the gate; see `ports.AttemptGate.http_client`."""
        sender = self.shared.pool if through is None else ThroughClient(through, self.shared.spawn)
        return GateClient(self, Terms(sender=sender, last_entry=last_entry, price=self._pricing(price)), through)

    @property
    def calls(self) -> int:
        """Calls made so far, whatever became of them."""
        return self.meter.calls

    def usage(self) -> Usage:
        """What its calls used so far; safe from any thread."""
        return self.meter.usage()

    def waited(self) -> float:
        """Seconds in which at least one call waited for a limit or for its next try; safe from any thread."""
        before, since = self._waited
        return before if since is None else before + self.shared.clock.monotonic() - since

    def cut(self, reason: str) -> None:
        """End every call in flight and refuse new ones; called on the engine loop."""
        if self._cut is None:
            self._cut = reason
        for call in list(self._in_flight):
            if not call.settled:
                self.was_cut = True
            call.cut(reason)

    def call(self, request: ModelRequest, terms: Terms) -> Call:
        """In the worker's thread: a new call, not yet started."""
        return Call(next(self._numbers), request, terms, self)

    def refusal(self) -> str | None:
        """Why no call may start any more, or None."""
        return self._cut or ("cancelled" if self.shared.closed() else None)

    def entered(self, call: Call) -> None:
        """A call is on the loop."""
        self._in_flight.add(call)
        self.shared.calls.add(call)

    def finished(self, call: Call) -> None:
        """A call came to its end."""
        self._in_flight.discard(call)
        self.shared.calls.discard(call)

    @contextmanager
    def waits(self) -> Iterator[None]:
        """While inside, a call waits; overlapping waits of several calls count once."""
        clock, (before, _) = self.shared.clock, self._waited
        if self._waits == 0:
            self._waited = (before, clock.monotonic())
            self.side.waiting(True)  # noqa: FBT003 - a message
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                before, since = self._waited
                self._waited = (before + clock.monotonic() - (since or 0.0), None)
                self.side.waiting(False)  # noqa: FBT003 - a message

    def _pricing(self, per_1000: tuple[float, float] | None) -> Callable[[str | None, str], Price | None]:
        if per_1000 is not None:
            fixed = fixed_price(per_1000)
            return lambda _model, _endpoint: fixed
        table = self.shared.prices
        table.load(self.shared.spawn)
        return lambda model, endpoint: table.price(model, endpoint) if model else None

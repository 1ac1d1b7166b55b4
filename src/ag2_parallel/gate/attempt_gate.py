"""One attempt's access to model servers: its clients, its count, its cut."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ag2_parallel.errors import ConfigurationError, TaskStopped
from ag2_parallel.gate.async_foreign_call import AsyncForeignCall
from ag2_parallel.gate.call import Call
from ag2_parallel.gate.digest import foreign_content, request_content
from ag2_parallel.gate.direct import ChatSender
from ag2_parallel.gate.foreign_call import ForeignCall
from ag2_parallel.gate.free_turn import FreeTurn
from ag2_parallel.gate.meter import Meter
from ag2_parallel.gate.prices import fixed_price
from ag2_parallel.gate.sync_client import GateClient
from ag2_parallel.gate.terms import Terms
from ag2_parallel.gate.through import ThroughClient
from ag2_parallel.gate.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    import httpx

    from ag2_parallel.async_ports import ForeignRecord, SendChatSoon
    from ag2_parallel.gate.attempt_side import AttemptSide
    from ag2_parallel.gate.call_events import CallEvents
    from ag2_parallel.gate.hedging import AnswerTimes
    from ag2_parallel.gate.limiter import Limiter
    from ag2_parallel.gate.meter import CallTally
    from ag2_parallel.gate.pool import Pool
    from ag2_parallel.gate.prices import PriceTable, Pricing
    from ag2_parallel.gate.relay import Relay
    from ag2_parallel.gate.request import ModelRequest
    from ag2_parallel.gate.routes import Asked
    from ag2_parallel.gate.wire import Sender
    from ag2_parallel.ports import Clock
    from ag2_parallel.results import TaskError
    from ag2_parallel.usage import Usage

T = TypeVar("T")


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
    turnstile: Limiter
    answer_times: AnswerTimes
    calls: set[Call | ForeignCall]
    closed: Callable[[], bool]


_OVER: Final = (
    'task "{task}" and its run are over, and what it made calls no model any more: make a fresh agent, or keep the runner '
    "open (`with ParallelAgentRunner(...) as runner:`)"
)


class GatedAttempt:
    """One attempt's access to model servers; the gate's `ports.AttemptGate`.

    Attributes:
        was_cut: Whether a cut ended a call in flight.
        filtered: Whether the provider's content filter left nothing of the last answer.
        replayed: By the request's digest, how often the journal answered it.
    """

    def __init__(self, shared: Shared, side: AttemptSide) -> None:
        self.was_cut = False
        self.filtered = False
        self.shared = shared
        self.side = side
        self.meter = Meter(side.spending)
        self.replayed: dict[str, int] = {}
        self._cut: str | None = None
        self._in_flight: set[Call | ForeignCall] = set()
        self._numbers = itertools.count(1)
        self._waits = 0
        self._waited: tuple[float, float | None] = (0.0, None)

    def http_client(
        self, *, last_entry: bool = True, price: tuple[float, float] | None = None, through: httpx.Client | None = None
    ) -> httpx.Client:
        """A client whose requests go through the gate; see `ports.AttemptGate.http_client`."""
        sender = self._sender(self.shared.pool if through is None else ThroughClient(through, self.shared.spawn))
        return GateClient(self, Terms(sender=sender, last_entry=last_entry, price=self._pricing(price)), through)

    def chat_sender(
        self, like: httpx.Request, *, last_entry: bool = True, price: tuple[float, float] | None = None
    ) -> ChatSender:
        """What sends chats without an HTTP client; see `ports.AttemptGate.chat_sender`."""
        terms = Terms(sender=self._sender(self.shared.pool), last_entry=last_entry, price=self._pricing(price))
        return ChatSender(self, like, terms)

    def _sender(self, sender: Sender) -> Sender:
        cassette = self.side.cassette
        return sender if cassette is None else cassette.sender(sender, self.side, self.shared.spawn)

    def turn(self, asked: Asked, tally: CallTally, events: CallEvents) -> Turn | FreeTurn:
        """A try's turn at the limits."""
        free = self.side.cassette is not None and self.side.cassette.plays
        return FreeTurn(events) if free else Turn(asked, self, tally, events)

    async def sleep(self, delay: float, reason: str) -> None:
        """The wait for the next try after a failure."""
        with self.waits(f"the next try after {reason}"):
            await asyncio.sleep(delay if self.side.cassette is None else self.side.cassette.scaled(delay))

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
            if not call.settled and call.on_the_loop:
                self.was_cut = True
            call.cut(reason)

    def call(self, request: ModelRequest, terms: Terms, relay: Relay | None = None) -> Call:
        """In the worker's thread: a new call, not yet started; its answer comes through `relay`."""
        if self.side.cassette is not None:
            request.asked = self.side.cassette.asked(request_content(request))
        return Call(next(self._numbers), request, terms, self, relay)

    def begin(self, start: Callable[[], None]) -> None:
        """Have a call start on the loop; from any thread.

        Raises:
            TaskStopped: The gate is closing.
            ConfigurationError: It has closed behind an attempt that ended well: somebody kept its agent.
        """
        if self._cut is None and self.shared.closed():
            raise ConfigurationError(_OVER.format(task=self.side.task))
        if not self.post(start) or self.shared.closed():  # in this order: what was posted before it closed is run
            raise TaskStopped(self._cut or "cancelled")

    def post(self, message: Callable[[], None]) -> bool:
        """Run `message` on the loop, soon; False where the loop has gone. From any thread."""
        try:
            self.shared.post(message)
        except RuntimeError:
            return False
        return True

    def refusal(self) -> str | None:
        """Why no call may start any more, or None."""
        return self._cut or ("cancelled" if self.shared.closed() else None)

    def hedge_after(self, request: ModelRequest, terms: Terms) -> float | None:
        """Seconds after which a copy of a request is sent, None where there is none."""
        wish = self.side.limits.hedge_after
        if wish is None or terms.sender is not self.shared.pool or not request.repeatable():
            return None
        return self.shared.answer_times.hedge_after(wish, request.endpoint, request.model)

    def over_budget(self, tally: CallTally) -> bool:
        """Whether the budget refuses a call, or one more try of it; the attempt then has to end.

        To be asked right before a request is sent, after every wait; safe from any thread.
        """
        spending = self.side.spending
        if spending is None:
            return False
        refusal = spending.refusal(tally.model, priced=lambda: tally.price() is not None)
        if refusal is not None:
            self.side.owner.cut_off(refusal.kind, refusal.message)
        return refusal is not None

    def foreign_call(
        self,
        work: Callable[[], T],
        *,
        model: str | None,
        endpoint: str,
        usage: Callable[[T], Mapping[str, Any] | None],
        failed: Callable[[Exception], TaskError],
        price: tuple[float, float] | None = None,
        estimate: int = 0,
        record: ForeignRecord[T] | None = None,
    ) -> T:
        """Make a call that another client sends; see `ports.AttemptGate.foreign_call`."""
        self.side.owner.check_call()
        if self.side.cassette is not None and record is not None:
            asked = self.side.cassette.asked(foreign_content(model, endpoint, record.asked))
            work = self.side.cassette.foreign(work, asked, record, failed, self.side)
        call = ForeignCall(next(self._numbers), model, endpoint, self._pricing(price), estimate, self)
        return call.made(work, usage, failed, record)

    def async_http_client(
        self,
        *,
        last_entry: bool = True,
        price: tuple[float, float] | None = None,
        through: Any = None,
    ) -> Any:
        """An `httpx2.AsyncClient` whose requests go through the gate."""
        from ag2_parallel.gate.httpx2_client import AsyncGateClient
        from ag2_parallel.gate.through_async import ThroughAsyncClient

        sender = self._sender(self.shared.pool if through is None else ThroughAsyncClient(through))
        return AsyncGateClient(self, Terms(sender=sender, last_entry=last_entry, price=self._pricing(price)), through)

    def async_chat_sender(
        self,
        like: Any,
        *,
        last_entry: bool = True,
        price: tuple[float, float] | None = None,
    ) -> SendChatSoon:
        """What sends chats for coroutines."""
        from ag2_parallel.gate.async_direct import AsyncChatSender

        sender = self._sender(self.shared.pool)
        return AsyncChatSender(self, like, Terms(sender=sender, last_entry=last_entry, price=self._pricing(price)))

    async def foreign_call_soon(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        model: str | None,
        endpoint: str,
        usage: Callable[[T], Mapping[str, Any] | None],
        failed: Callable[[Exception], TaskError],
        price: tuple[float, float] | None = None,
        estimate: int = 0,
        record: ForeignRecord[T] | None = None,
    ) -> T:
        """Make a call that another async client sends."""
        self.side.owner.check_call()
        if self.side.cassette is not None and record is not None:
            asked = self.side.cassette.asked(foreign_content(model, endpoint, record.asked))
            work = self.side.cassette.foreign_soon(work, asked, record, failed, self.side)
        call = AsyncForeignCall(next(self._numbers), model, endpoint, self._pricing(price), estimate, self)
        return await call.made_soon(work, usage, failed, record)

    def entered(self, call: Call | ForeignCall) -> None:
        """A call is on the loop."""
        self._in_flight.add(call)
        self.shared.calls.add(call)

    def finished(self, call: Call | ForeignCall) -> None:
        """A call came to its end."""
        self._in_flight.discard(call)
        self.shared.calls.discard(call)

    @contextmanager
    def waits(self, what: str) -> Iterator[None]:
        """While inside, a call waits for `what`; overlapping waits of several calls count once."""
        clock, (before, _) = self.shared.clock, self._waited
        span = self.side.trace.begin("wait", what)
        if self._waits == 0:
            self._waited = (before, clock.monotonic())
            self.side.owner.tell_waiting(waiting=True)
        self._waits += 1
        try:
            yield
        finally:
            self.side.trace.end(span)
            self._waits -= 1
            if self._waits == 0:
                before, since = self._waited
                self._waited = (before + clock.monotonic() - (since or 0.0), None)
                self.side.owner.tell_waiting(waiting=False)

    def _pricing(self, per_1000: tuple[float, float] | None) -> Pricing:
        if per_1000 is not None:
            fixed = fixed_price(per_1000)
            return lambda _model, _endpoint: fixed
        table = self.shared.prices
        table.load(self.shared.spawn)
        return table

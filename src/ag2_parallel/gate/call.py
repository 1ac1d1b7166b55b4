"""The life of one model call on the engine loop: tries, waits, the answer's way back, the count.

::

    worker thread                         engine loop
    GateTransport.handle_request ─post──► Call.start ─► try ─► wait ─► try ...
             relay.get()  ◄────────────── relay.put(Head), bytes, end or failure
             stream.close ─post──────────► Call.hang_up
                                           Call.cut  ◄── AttemptGate.cut

A coroutine on an attempt's private loop does the same with an `AsyncRelay`, and never blocks its loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx

from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.call_events import CallEvents
from ag2_parallel.gate.failure import Failure, broken, refused, unusable, was_sent
from ag2_parallel.gate.hedging import first_good
from ag2_parallel.gate.meter import BYTES_PER_TOKEN, CallTally, usage_of
from ag2_parallel.gate.off_loop import off_loop
from ag2_parallel.gate.relay import Relay
from ag2_parallel.gate.retry import Decision, GiveUp, decide
from ag2_parallel.gate.sse import EventStream, parsed_object, usage_block
from ag2_parallel.gate.turn import Turn
from ag2_parallel.gate.wire import Head, is_event_stream, whole
from ag2_parallel.provider_errors import was_filtered

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.prices import Price
    from ag2_parallel.gate.request import ModelRequest
    from ag2_parallel.gate.wire import Reply, Sender

_ERROR: Final = 400
_REDIRECT: Final = 300
_REFUSED_FIELD: Final = frozenset({400, 422})
_PARSED_ON_THE_LOOP: Final = 256 * 1024
"""Longer answers are parsed on a thread, so that one of them does not hold all the others."""

_TO_THE_END: Final = 1.0
"""Seconds in which the last bytes after an answer's own end may come, so that its connection can be used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one client's calls have in common.

    Attributes:
        sender: Sends the requests.
        last_entry: Whether no other entry of a fallback list comes after this one.
        price: The price of a model's tokens at an endpoint, asked when a cost is wanted.
    """

    sender: Sender
    last_entry: bool
    price: Callable[[str | None, str], Price | None]


class Call:
    """One call. Made in the worker's thread; everything else happens on the loop.

    Attributes:
        relay: Where the worker gets the answer from.
        task: The task on the loop, once it runs.
        settled: Whether it is counted; what still happens then is the way of an answer's last bytes.
    """

    on_the_loop = True
    """Whether a cut ends it where it is."""

    def __init__(
        self, number: int, request: ModelRequest, terms: Terms, attempt: GatedAttempt, relay: Relay | None = None
    ) -> None:
        self.relay = relay or Relay(attempt.shared.post)
        self.task: asyncio.Task[None] | None = None
        self.settled = False
        self._request = request
        self._terms = terms
        self._attempt = attempt
        model, endpoint = request.model, request.endpoint  # all that the tally keeps: the body goes with the call
        self._tally: CallTally = attempt.meter.open(model, lambda: terms.price(model, endpoint))
        self._events = CallEvents(number, request, attempt.side)
        self._stream: EventStream | None = None
        self._copies = 0
        self._requests = 0
        self._asked_usage = False
        self._doubted = False
        self._on_the_wire = False
        self._started = 0.0

    def start(self) -> None:
        """Begin, unless the attempt was cut meanwhile."""
        reason = self._attempt.refusal()
        if reason is not None:
            self.relay.fail(TaskStopped(reason))
            return
        self._started = self._attempt.shared.clock.monotonic()
        self._attempt.entered(self)
        self.task = self._attempt.shared.loop.create_task(self._until_answered())
        # Not a `finally` inside: a task that is cancelled before its first step never gets there.
        self.task.add_done_callback(self._ended)

    def cut(self, reason: str) -> None:
        """End it now: the connection closes, and the worker gets `TaskStopped`."""
        if not self.settled:
            self._events.cut(reason)
        self._settle("cut")
        self.relay.fail(TaskStopped(reason), at_once=True)
        if self.task is not None:
            self.task.cancel()

    def hang_up(self) -> None:
        """The worker wants nothing more of the answer."""
        if self.task is None or self.task.done():
            return
        if self._stream is not None and self._stream.done:
            self._attempt.shared.loop.call_later(_TO_THE_END, self.task.cancel)
        else:
            self._settle("closed")
            self.task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            # By `cut` or `hang_up`, which have said so, or by a loop that closes.
            self._settle("cancelled")
            self.relay.fail(TaskStopped())
        elif (error := task.exception()) is not None:
            self._settle(type(error).__name__)
            self.relay.fail(error)
        self._attempt.finished(self)

    def _settle(self, status: str) -> None:
        """Count it and tell of it, before the worker gets the end of its answer: it may look at the usage at once."""
        if self.settled:
            return
        self.settled = True
        self._account_for_the_rest()
        if self._events.wanted:
            duration = self._attempt.shared.clock.monotonic() - self._started
            self._events.finished(status, duration, usage_of([self._tally]))

    async def _until_answered(self) -> None:
        tries = 0
        while True:
            tries += 1
            async with Turn(self._request, self._attempt, self._tally, self._events) as turn:
                failure = turn.refusal or await self._try(turn)
                turn.heard(failure)
            if failure is None:
                return
            if self._asked_usage and failure.outcome.status in _REFUSED_FIELD:
                self._doubt_the_question(failure)
                tries -= 1  # what was refused was the gate's own wish
                continue
            decision = await self._decide(failure, tries)
            if isinstance(decision, GiveUp):
                self._hand_over(failure, decision.reason, tries)
                return
            self._tally.retried += 1
            await self._wait(failure, decision.delay)

    async def _try(self, turn: Turn) -> Failure | None:
        """Send the request; None where the answer is on its way to the worker."""
        request, attempt = self._request, self._attempt
        if request.metered and attempt.over_budget(self._tally):
            turn.unused()
            self._events.refused("the budget is used up")
            self._settle("refused")
            self.relay.fail(TaskStopped("budget"), at_once=True)
            return None
        self._asked_usage = (
            request.takes_usage and not self._doubted and request.endpoint not in attempt.shared.no_usage
        )
        self._on_the_wire = True
        self._stream = None
        try:
            after = self._hedge_after()
            head = await (self._send(turn) if after is None else self._send_twice(turn, after))
        except httpx.HTTPError as error:
            if not was_sent(error):
                self._on_the_wire = False
            self._account_for_the_rest()
            return broken(error)
        return None if head is None else await self._judge(head)

    async def _send(self, turn: Turn) -> Head | None:
        """One request and its answer; None for a stream, which is on its way to the worker."""
        request, attempt = self._request, self._attempt
        self._requests += 1
        self._events.started(self._requests)
        reply = await self._terms.sender.send(request, request.body_with_usage() if self._asked_usage else request.body)
        try:
            attempt.side.alive()
            turn.head_arrived(reply.status, reply.headers)
            if reply.status < _REDIRECT and (request.streamed or is_event_stream(reply)):
                await self._pass_on(reply)
                return None
            return Head(reply.status, reply.headers, await whole(reply, attempt.side.alive))
        finally:
            reply.close()

    def _hedge_after(self) -> float | None:
        """Seconds after which a copy is sent, None where there is none."""
        wish, request = self._attempt.side.limits.hedge_after, self._request
        if wish is None or self._terms.sender is not self._attempt.shared.pool or not request.repeatable():
            return None
        return self._attempt.shared.answer_times.hedge_after(wish, request.endpoint, request.model)

    async def _send_twice(self, turn: Turn, after: float) -> Head | None:
        """The same where a slow request gets a copy; what the loser used is estimated."""

        def copy() -> Coroutine[Any, Any, Head | None] | None:
            other = turn.copy()
            if other is None:
                return None
            self._copies = 1
            self._events.hedged(after)
            return other.around(self._send(other))

        head, losers = await first_good(lambda: self._send(turn), copy, after, _is_good)
        self._copies = 0
        if losers and self._request.metered:
            self._tally.unreport(self._estimate())
        return head

    async def _pass_on(self, reply: Reply) -> None:
        """Hand a stream over as it comes. Fails like any try until its first byte, and never after."""
        events = self._stream = EventStream(strip_usage=self._asked_usage)
        chunk = await reply.next_chunk()
        if not chunk:
            raise httpx.RemoteProtocolError(f"{self._request.endpoint} answered with an empty stream")
        if self._doubted:
            self._attempt.shared.no_usage.add(self._request.endpoint)  # without the question it works
        self.relay.put(Head(reply.status, reply.headers, None))
        try:
            while chunk:
                self._attempt.side.alive()
                passed = events.feed(chunk)
                if events.done:
                    self._settle_stream(events, reply.status)
                await self._pass(passed)
                chunk = await reply.next_chunk()
        except httpx.HTTPError as error:
            self._settle(type(error).__name__)
            self.relay.fail(error)
            return
        rest = events.finish()
        self._settle_stream(events, reply.status)
        await self._pass(rest)
        self.relay.end()

    def _settle_stream(self, events: EventStream, status: int) -> None:
        if self._on_the_wire and self._request.metered:
            self._tally.answer(events.usage, self._estimate)
            self._attempt.filtered = events.filtered
        self._on_the_wire = False
        self._settle(str(status))

    async def _pass(self, chunk: bytes) -> None:
        if chunk:
            await self.relay.put_bytes(chunk)

    async def _judge(self, head: Head) -> Failure | None:
        """A whole answer: handed over, or a failure."""
        body = head.body or b""
        if head.status >= _ERROR:
            self._on_the_wire = False  # an error is not charged for
            return refused(head, self._attempt.shared.clock.now())
        if self._request.metered and head.status < _REDIRECT:
            parsed = await self._parsed(body)
            if parsed is None and self._request.chat:
                self._account_for_the_rest(len(body))
                return unusable(head, self._request.endpoint, self._attempt.side.redactor)
            self._tally.answer(usage_block(parsed), lambda: self._estimate(len(body)))
            self._attempt.filtered = was_filtered(parsed)
        self._on_the_wire = False
        self._settle(str(head.status))
        self.relay.put(head)
        self.relay.end()
        return None

    async def _parsed(self, body: bytes) -> dict[str, Any] | None:
        if len(body) <= _PARSED_ON_THE_LOOP:
            return parsed_object(body)
        return await off_loop(self._attempt.shared.spawn, lambda: parsed_object(body))

    def _doubt_the_question(self, failure: Failure) -> None:
        """A request that asked for usage was refused: send the original, and find out whether that was why."""
        assert failure.head is not None
        self._doubted = True
        self._tally.retried += 1
        if any(word in (failure.head.body or b"") for word in (b"stream_options", b"include_usage")):
            self._attempt.shared.no_usage.add(self._request.endpoint)

    async def _decide(self, failure: Failure, tries: int) -> Decision:
        policy, attempt = self._attempt.side.retry, self._attempt
        if failure.outcome.transient and callable(policy.on):
            judge, error = policy.on, failure.as_task_error()
            if not await off_loop(attempt.shared.spawn, lambda: bool(judge(error))):
                return GiveUp()
        return decide(
            failure.outcome,
            policy=policy,
            tries=tries,
            last_entry=self._terms.last_entry,
            remaining=attempt.side.remaining(),
            draw=attempt.shared.draw,
        )

    async def _wait(self, failure: Failure, delay: float) -> None:
        self._events.retrying(failure.outcome.reason, delay)
        with self._attempt.waits():
            await asyncio.sleep(delay)

    def _hand_over(self, failure: Failure, reason: str | None, tries: int) -> None:
        self._settle(str(failure.outcome.status or failure.outcome.reason))
        head = failure.final_head(reason)
        if head is None:
            self.relay.fail(failure.final_error(reason, tries))
        else:
            self.relay.put(head)
            self.relay.end()

    def _account_for_the_rest(self, received: int = 0) -> None:
        """Count a request that was sent and has brought no usage block, once."""
        if self._on_the_wire and self._request.metered:
            for _ in range(1 + self._copies):
                self._tally.unreport(self._estimate(received))
        self._on_the_wire = False
        self._copies = 0

    def _estimate(self, received: int = 0) -> int:
        if self._stream is not None:
            received = self._stream.text_length
        return self._request.estimated_tokens() + received // BYTES_PER_TOKEN


def _is_good(head: Head | None) -> bool:
    return head is None or head.status < _ERROR

"""The life of one model call on the engine loop: tries, waits, the answer's way back, the count.

::

    worker thread                         engine loop
    GateTransport.handle_request ─post──► Call.start ─► try ─► wait ─► try ... ─► keep
             relay.get()  ◄────────────── relay.put(Head), bytes, end or failure
             stream.close ─post──────────► Call.hang_up
                                           Call.cut  ◄── AttemptGate.cut
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx

from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.call_events import CallEvents
from ag2_parallel.gate.call_span import CallSpan
from ag2_parallel.gate.failure import Failure, broken, refused, unusable, was_sent
from ag2_parallel.gate.hedging import count_beside, first_good, is_good
from ag2_parallel.gate.meter import BYTES_PER_TOKEN, CallTally, usage_of
from ag2_parallel.gate.off_loop import parsed_soon
from ag2_parallel.gate.recorder import Recorder, emptied_by_filter, recorded_parts
from ag2_parallel.gate.relay import Relay
from ag2_parallel.gate.retry import GiveUp
from ag2_parallel.gate.sse import EventStream, begins_events, usage_block
from ag2_parallel.gate.verdict import verdict
from ag2_parallel.gate.wire import Head, is_event_stream, whole
from ag2_parallel.provider_errors import was_filtered

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.free_turn import FreeTurn
    from ag2_parallel.gate.request import ModelRequest
    from ag2_parallel.gate.terms import Terms
    from ag2_parallel.gate.turn import Turn
    from ag2_parallel.gate.wire import Reply
    from ag2_parallel.records import CallRecord

_ERROR: Final = 400
_REDIRECT: Final = 300
_REFUSED_FIELD: Final = frozenset({400, 422})
_TO_THE_END: Final = 1.0
"""Seconds in which the last bytes after an answer's own end may come, so that its connection can be used again."""


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
        self._tally: CallTally = attempt.meter.open(request.model, terms.price, request.endpoint)
        self._events = CallEvents(number, request, attempt.side)
        self._recorder = Recorder.of(attempt, request)
        self._whole: Head | None = None
        self._stream: EventStream | None = None
        self._copies = 0
        self._requests = 0
        self._asked_usage = False
        self._doubted = False
        self._on_the_wire = False
        self._started = 0.0
        self._span: CallSpan  # begins on the loop

    def start(self) -> None:
        """Begin, unless the attempt was cut meanwhile."""
        reason = self._attempt.refusal()
        if reason is not None:
            self.relay.fail(TaskStopped(reason))
            return
        record = None if self._recorder is None else self._recorder.found()
        if record is not None:
            self._replay(record)
            return
        self._started = self._attempt.shared.clock.monotonic()
        self._span = CallSpan(self._attempt.side, self._tally)
        self._attempt.entered(self)
        self.task = self._attempt.shared.loop.create_task(self._until_answered())
        # Not a `finally` inside: a task that is cancelled before its first step never gets there.
        self.task.add_done_callback(self._ended)

    def _replay(self, record: CallRecord) -> None:
        """Hand a recorded answer over: no limit, no request, nothing to pay."""
        self.settled = True
        self._tally.replayed += 1
        self._attempt.filtered = emptied_by_filter(record)
        self._attempt.side.owner.sign_of_life()
        self._events.replayed(record.usage)
        CallSpan(self._attempt.side, self._tally).ended("replayed")
        for part in recorded_parts(record):
            self.relay.put(part)
        self.relay.end()

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
        self._span.ended(status)
        if self._events.wanted:
            self._events.finished(status, self._duration(), usage_of([self._tally]))

    def _duration(self) -> float:
        return self._attempt.shared.clock.monotonic() - self._started

    async def _until_answered(self) -> None:
        tries = 0
        while True:
            tries += 1
            async with self._attempt.turn(self._request, self._tally, self._events) as turn:
                failure = turn.refusal or await self._try(turn)
                turn.heard(failure)
            if failure is None:
                await self._hand_over_whole()
                return
            if self._asked_usage and failure.outcome.status in _REFUSED_FIELD:
                self._doubt_the_question(failure)
                tries -= 1  # what was refused was the gate's own wish
                continue
            decision = await verdict(
                failure.outcome, failure.as_task_error, self._attempt, tries=tries, last_entry=self._terms.last_entry
            )
            if isinstance(decision, GiveUp):
                await self._hand_over(failure, decision.reason, tries)
                return
            self._tally.retried += 1
            self._events.retrying(failure.outcome.reason, decision.delay)
            await self._attempt.sleep(decision.delay, failure.outcome.reason)

    async def _try(self, turn: Turn | FreeTurn) -> Failure | None:
        """Send the request; None where the answer is on its way to the worker."""
        request, attempt = self._request, self._attempt
        if request.metered and attempt.over_budget(self._tally):
            turn.unused()
            self._events.refused("the budget is used up")
            self._settle("refused")
            self.relay.fail(TaskStopped("budget"), at_once=True)
            return None
        known = self._doubted or request.endpoint in attempt.shared.no_usage
        self._asked_usage = request.takes_usage and not known
        self._on_the_wire = True
        self._stream = None
        try:
            after = self._attempt.hedge_after(self._request, self._terms)
            head = await (self._send(turn) if after is None else self._send_twice(turn, after))
        except httpx.HTTPError as error:
            if not was_sent(error):
                self._on_the_wire = False
            self._account_for_the_rest()
            return broken(error)
        return None if head is None else await self._judge(head)

    async def _send(self, turn: Turn | FreeTurn) -> Head | None:
        """One request and its answer; None for a stream, which is on its way to the worker."""
        request, attempt = self._request, self._attempt
        self._requests += 1
        self._events.started(self._requests)
        reply = await self._terms.sender.send(request, request.body_with_usage() if self._asked_usage else request.body)
        try:
            attempt.side.owner.sign_of_life()
            turn.head_arrived(reply.status, reply.headers)
            if reply.status < _REDIRECT and (request.streamed or is_event_stream(reply)):
                return await self._pass_on(reply)
            return Head(reply.status, reply.headers, await whole(reply, attempt.side.owner.sign_of_life))
        finally:
            reply.close()

    async def _send_twice(self, turn: Turn | FreeTurn, after: float) -> Head | None:
        """The same where a slow request gets a copy; what both used is counted."""

        def copy() -> Coroutine[Any, Any, Head | None] | None:
            other = None if self._stream is not None else turn.copy()
            if other is None:
                return None
            self._copies = 1
            self._events.hedged(after)
            return other.around(self._send(other))

        counts, *beside = await first_good(lambda: turn.raced(self._send(turn)), copy, after, is_good)
        self._copies = 0
        if self._request.metered:
            for end in beside:
                count_beside(end, self._tally, self._estimate)
        if isinstance(counts, BaseException):
            raise counts
        return counts

    async def _pass_on(self, reply: Reply) -> Head | None:
        """Hand a stream over as it comes: fails like any try until its first byte. What is none is returned whole."""
        if self._stream is not None:
            raise httpx.RemoteProtocolError("the stream of the request beside this one came first")
        events = self._stream = EventStream(strip_usage=self._asked_usage)
        chunk = await reply.next_chunk()
        if not chunk:
            raise httpx.RemoteProtocolError(f"{self._request.endpoint} answered with an empty stream")
        if self._request.chat and not is_event_stream(reply) and not begins_events(chunk):
            self._stream = None
            return Head(reply.status, reply.headers, chunk + await whole(reply, self._attempt.side.owner.sign_of_life))
        if self._doubted:
            self._attempt.shared.no_usage.add(self._request.endpoint)  # without the question it works
        head = Head(reply.status, reply.headers, None)
        self.relay.put(head)
        try:
            while chunk:
                self._attempt.side.owner.sign_of_life()
                passed = events.feed(chunk)
                await (self._pass_end if events.done else self._pass)(passed, head)
                chunk = await reply.next_chunk()
        except httpx.HTTPError as error:
            self._settle(type(error).__name__)
            self.relay.fail(error)
        else:
            await self._pass_end(events.finish(), head)
            self.relay.end()
        return None

    async def _pass_end(self, chunk: bytes, head: Head) -> None:
        """The bytes with which a stream is complete: held back until it is counted and written down."""
        assert self._stream is not None
        if self._on_the_wire:
            self._on_the_wire = False
            if self._request.metered:
                self._tally.answer(self._stream.usage, self._estimate)
                self._attempt.filtered = self._stream.filtered
            await self._keep(head, chunk)
        self._settle(str(head.status))
        if chunk:
            await self.relay.put_bytes(chunk)

    async def _pass(self, chunk: bytes, _head: Head) -> None:
        if chunk:
            if self._recorder is not None:
                self._recorder.passed(chunk)
            await self.relay.put_bytes(chunk)

    async def _keep(self, head: Head, last: bytes = b"") -> None:
        """Write an answer down, where that is wanted; the worker gets its end when it is safe."""
        if self._recorder is not None:
            await self._recorder.kept(head, last, usage_of([self._tally]), self._duration())

    async def _judge(self, head: Head) -> Failure | None:
        """A whole answer: to be handed over, or a failure."""
        body = head.body or b""
        if head.status >= _ERROR:
            self._on_the_wire = False  # an error is not charged for
            return refused(head, self._attempt.shared.clock.now())
        if self._request.metered and head.status < _REDIRECT:
            parsed = await parsed_soon(self._attempt.shared.spawn, body)
            if parsed is None and self._request.chat:
                self._account_for_the_rest(len(body))
                return unusable(head, self._request.endpoint, self._attempt.side.redactor)
            self._tally.answer(usage_block(parsed), lambda: self._estimate(len(body)))
            self._attempt.filtered = was_filtered(parsed)
        self._on_the_wire = False
        self._whole = head
        return None

    async def _hand_over_whole(self) -> None:
        """The answer's way to the worker, its turn being over; a stream has gone there already."""
        head = self._whole
        if head is None:
            return
        if head.status < _REDIRECT:
            await self._keep(head)
        self._settle(str(head.status))
        self.relay.put(head)
        self.relay.end()

    def _doubt_the_question(self, failure: Failure) -> None:
        """A request that asked for usage was refused: send the original, and find out whether that was why."""
        assert failure.head is not None
        self._doubted = True
        self._tally.retried += 1
        if any(word in (failure.head.body or b"") for word in (b"stream_options", b"include_usage")):
            self._attempt.shared.no_usage.add(self._request.endpoint)

    async def _hand_over(self, failure: Failure, reason: str | None, tries: int) -> None:
        head = failure.final_head(reason)
        if head is not None and not self._terms.last_entry:
            await self._keep(head)  # what the next entry answers comes after it in a replay too
        self._settle(str(failure.outcome.status or failure.outcome.reason))
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

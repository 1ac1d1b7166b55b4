"""One model call that a client of another provider sends: it blocks the worker's own thread.

::

    worker thread                     engine loop
    made ──────────────────────────►  admitted: the attempt may still call
      work()                          cut: counted as sent and unreported; the thread comes back when it does
      read what came of it ────────►  decided: again after a wait, or given up

What happens on the loop is what the calls of all tasks have in common; the thread waits for it, and a
cut ends that wait.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.call_events import CallEvents
from ag2_parallel.gate.call_span import CallSpan
from ag2_parallel.gate.failure import Failure
from ag2_parallel.gate.meter import usage_of
from ag2_parallel.gate.recorder import Recorder, emptied_by_filter
from ag2_parallel.gate.retry import Again, GiveUp, Outcome
from ag2_parallel.gate.verdict import verdict
from ag2_parallel.gate.wire import Head
from ag2_parallel.provider_errors import is_transient, was_filtered

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Mapping

    from ag2_parallel.async_ports import ForeignRecord
    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.free_turn import FreeTurn
    from ag2_parallel.gate.meter import CallTally
    from ag2_parallel.gate.prices import Price
    from ag2_parallel.gate.retry import Decision
    from ag2_parallel.gate.turn import Turn
    from ag2_parallel.records import CallRecord
    from ag2_parallel.results import TaskError

T = TypeVar("T")


@dataclass(slots=True)
class _ForeignRequest:
    """What limits need to know of a call that another client sends."""

    endpoint: str
    model: str | None
    estimate: int
    headers: list[tuple[str, str]] = field(default_factory=list)

    def estimated_tokens(self) -> int:
        return self.estimate

    def answer_cap(self) -> int | None:
        return None


class ForeignCall:
    """One call and its tries.

    Attributes:
        task: What is done for it on the loop now, if anything.
        settled: Whether it is counted.
    """

    def __init__(
        self,
        number: int,
        model: str | None,
        endpoint: str,
        price: Callable[[str | None, str], Price | None],
        estimate: int,
        attempt: GatedAttempt,
    ) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.settled = False
        self._on_its_way = False
        self._asked = _ForeignRequest(endpoint, model, estimate)
        self._events = CallEvents(number, self._asked, attempt.side)
        self._recorder: Recorder | None = None
        self._turn: Turn | FreeTurn | None = None
        self._estimate = estimate
        self._attempt = attempt
        self._tally: CallTally = attempt.meter.open(model, price, endpoint)
        self._tries = 0
        self._started = attempt.shared.clock.monotonic()
        self._cut: str | None = None
        self._span = CallSpan(attempt.side, self._tally)

    @property
    def on_the_loop(self) -> bool:
        """Whether a cut ends it where it is; not while its client has the thread."""
        return self._on_its_way

    def made(
        self,
        work: Callable[[], T],
        usage: Callable[[T], Mapping[str, Any] | None],
        failed: Callable[[Exception], TaskError],
        record: ForeignRecord[T] | None = None,
    ) -> T:
        """On the worker's thread: make the call, again where that may help. Raises what the last try raised."""
        if record is not None:
            asked = self._asked
            self._recorder = Recorder.of_foreign(self._attempt, asked.model, asked.endpoint, record.asked)
        try:
            if record is not None and self._recorder is not None:
                found = self._on_loop(self._found)
                if found is not None:
                    return record.load(found.body)
            while True:
                self._on_loop(self._admitted)
                try:
                    answer = work()
                except Exception as error:
                    again = self._on_loop(partial(self._decided, failed(error)))
                    if isinstance(again, GiveUp):
                        if again.reason:
                            error.add_note(again.reason)
                        raise
                else:
                    body = None if record is None or self._recorder is None else record.dump(answer)
                    self._on_loop(partial(self._answered, usage(answer), body, filtered=was_filtered(answer)))
                    return answer
        finally:
            self._attempt.post(self._left)

    def cut(self, reason: str) -> None:
        """On the loop: it is over for the attempt, whenever its client comes back."""
        if self._cut is None and not self.settled:
            self._events.cut(reason)
        self._cut = self._cut or reason
        self._count_in_flight()
        self._settle("cut")
        if self.task is not None:
            self.task.cancel()

    # ---- on the loop

    def _count_in_flight(self) -> None:
        """What its client sent has brought no answer, and may be charged for."""
        if not self.settled and not self._on_its_way:
            self._tally.unreport(self._estimate)

    async def _found(self) -> CallRecord | None:
        """The record of an earlier life; with one, nothing more is done for the call."""
        record = None if self._recorder is None else self._recorder.found()
        if record is not None:
            self.settled = True
            self._tally.replayed += 1
            self._attempt.filtered = emptied_by_filter(record)
            self._attempt.side.owner.sign_of_life()
            self._events.replayed(record.usage)
            self._span.ended("replayed")
        return record

    async def _admitted(self) -> None:
        """Before each try. A limit is waited for here."""
        turn = await self._attempt.turn(self._asked, self._tally, self._events).__aenter__()
        if turn.refusal is not None:
            assert turn.refusal.error is not None
            raise turn.refusal.error
        self._turn = turn
        self._tries += 1
        if self._attempt.over_budget(self._tally):
            turn.unused()
            self._events.refused("the budget is used up")
            self._settle("refused")
            raise TaskStopped("budget")
        self._attempt.side.owner.sign_of_life()
        self._events.started(self._tries)

    def _leave_turn(self, failure: Failure | None) -> None:
        """A try is over."""
        if self._turn is not None:
            self._turn.heard(failure)
            self._turn.leave()
            self._turn = None

    async def _answered(self, block: Mapping[str, Any] | None, body: bytes | None, *, filtered: bool) -> None:
        """It was answered; returns when that is written down."""
        self._attempt.side.owner.sign_of_life()
        self._attempt.filtered = filtered
        self._tally.answer(block, lambda: self._estimate)
        self._leave_turn(None)
        if self._recorder is not None and body is not None:
            await self._recorder.kept(Head(200, [], body), b"", usage_of([self._tally]), self._duration())
        self._settle("200")

    async def _decided(self, error: TaskError) -> Decision:
        """After a failed try: what is next, a wait included."""
        attempt = self._attempt
        transient = is_transient(error.kind, error.status_code) and error.retryable
        status = error.status_code
        reason = error.type if status is None else f"HTTP {status}"
        if status is None and error.kind in {"timeout", "connection"}:
            self._tally.unreport(self._estimate)  # it may have been answered, and be charged for
        outcome = Outcome(kind=error.kind, transient=transient, reason=reason, status=status, hint=error.retry_after)
        self._leave_turn(Failure(outcome))
        # AG2 goes on to another entry after errors of the OpenAI SDK alone.
        decision = await verdict(outcome, lambda: error, attempt, tries=self._tries, last_entry=True)
        if isinstance(decision, Again):
            self._tally.retried += 1
            self._events.retrying(reason, decision.delay)
            await attempt.sleep(decision.delay, reason)
        else:
            self._settle(reason)
        return decision

    def _settle(self, status: str) -> None:
        if self.settled:
            return
        self.settled = True
        self._span.ended(status)
        if self._events.wanted:
            self._events.finished(status, self._duration(), usage_of([self._tally]))

    def _duration(self) -> float:
        return self._attempt.shared.clock.monotonic() - self._started

    def _left(self) -> None:
        self._settle("closed")
        if self._turn is not None:
            self._turn.leave()
            self._turn = None
        self._attempt.finished(self)

    # ---- between the two

    def _on_loop(self, step: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """On the worker's thread: run a step on the loop and wait for it. A cut raises `TaskStopped`."""
        self._attempt.side.owner.check_call()
        done: Future[T] = Future()
        try:
            self._attempt.begin(lambda: self._begin(step, done))
            return done.result()
        except BaseException:
            self._attempt.post(self._abandon)  # an interrupt raised in this thread
            raise

    def _begin(self, step: Callable[[], Coroutine[Any, Any, T]], done: Future[T]) -> None:
        reason = self._cut or self._attempt.refusal()
        if reason is not None:
            self._cut = reason
            self._settle("cut")
            done.set_exception(TaskStopped(reason))
            return
        self._attempt.entered(self)
        self._on_its_way = True
        self.task = self._attempt.shared.loop.create_task(step())
        self.task.add_done_callback(lambda task: self._done(task, done))

    def _done(self, task: asyncio.Task[T], done: Future[T]) -> None:
        self.task, self._on_its_way = None, False
        if task.cancelled():
            done.set_exception(TaskStopped(self._cut or "cancelled"))
        elif (error := task.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(task.result())

    def _abandon(self) -> None:
        if self.task is not None:
            self.task.cancel()

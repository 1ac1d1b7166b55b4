"""A run in worker processes: its backend, and what its attempts ask of the caller's process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ag2_parallel.backends import wire
from ag2_parallel.backends.crossing import Unreadable, in_words, packed_task
from ag2_parallel.backends.flights import Flight
from ag2_parallel.backends.revived import told
from ag2_parallel.errors import NotSerializableError
from ag2_parallel.ports import AttemptOutcome
from ag2_parallel.results import TaskError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.backends.processes import ProcessPool
    from ag2_parallel.ports import AttemptOrder, BackendListener, Clock, Draft, Judge, Snapshot
    from ag2_parallel.records import CallTape, Receipts

_ANSWER_TIME = 0.2
"""Seconds that an attempt has to end by itself after it was insisted, before its process may be killed for it."""

_MOST_SENT = 5
"""How many workers that die before they run an attempt is sent to; it takes a while until a dead node is known as dead."""

_CLOSING_TIME = 2.0
"""Seconds in which processes close what the run had open in them."""


class Account(Protocol):
    """What a run may spend, and has spent."""

    def charged(self, index: int, tokens: int, cost: float) -> None:
        """A task used so much more."""

    def used_up(self, index: int) -> tuple[int | None, str] | None:
        """Whether nothing more may be spent: by the task (its index) or by the run (None), and the words."""

    def refused(self) -> None:
        """A call was refused because the run may spend nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSide:
    """What the attempts of a run may ask of the caller's process; called on the loop, where nothing else is said.

    Attributes:
        draft: Makes the mirror of a task's draft, by its name.
        tape: The recorded model calls of an attempt, where calls are recorded.
        receipts: The effects of a task, by its name; called on threads.
        happened: Told an event: the name of its class, and its fields.
        waited_for: Told for which limit a call waited, and how many seconds.
        learnt: Told keys that only the attempts' own process has seen, to be masked.
        mask: Hides the secrets of a text.
        broke: Told what could not be had in a process, so that the run ends.
        answer: Puts the question of an attempt to a person and waits. On a thread.
        account: The run's, where there is a budget.
        spawn: Runs a blocking function on a thread.
        clock: Where time comes from.
    """

    draft: Callable[[str], Draft]
    tape: Callable[[AttemptOrder], CallTape | None]
    receipts: Callable[[str], Receipts]
    happened: Callable[[str, dict[str, Any]], None]
    waited_for: Callable[[str, float], None]
    learnt: Callable[[tuple[str, ...]], None]
    mask: Callable[[str], str]
    broke: Callable[[TaskError], None]
    answer: Callable[[wire.Asked, Flight], wire.Answered]
    account: Account | None
    spawn: Callable[[Callable[[], None]], None]
    clock: Clock


class ProcessRun:
    """`ports.Backend` for one run.

    Attributes:
        run_id: The run.
        limits: What it wants of the limits of model calls.
        opening: What a process must be told before its first attempt of this run.
    """

    def __init__(
        self, run_id: str, pool: ProcessPool, listener: BackendListener, side: RunSide, *, limits: Any, payload: bytes
    ) -> None:
        """`payload` is what the run's attempts need in a process, `limits` what its calls are held to."""
        self.run_id = run_id
        self.limits = limits
        self.opening = wire.OpenRun(run_id, payload)
        self._pool = pool
        self._listener = listener
        self._side = side
        self._flights: dict[tuple[int, int], Flight] = {}
        self._losses: dict[int, int] = {}
        self._to_close = 0
        self._closed = threading.Event()

    @property
    def has_budget(self) -> bool:
        """See `permits.Limited`."""
        return self._side.account is not None

    # ---- ports.Backend

    def start(self, order: AttemptOrder) -> bool:
        """See `ports.Backend`."""
        key = wire.Key(self.run_id, order.index, order.attempt)
        flight = Flight(key, order, self._side.draft(order.task.name), self._side.tape(order))
        self._flights[order.index, order.attempt] = flight
        self._pool.place(flight, alone=order.index in self._losses)
        self._warn_of_budget(order.index)
        return True

    def order_for(self, flight: Flight) -> Callable[[], wire.Start | None]:
        """What starts an attempt in a process; packed on the thread that writes to it, since that runs users' code."""
        deadline = flight.order.deadline
        flight.sent += 1

        def packed() -> wire.Start | None:
            order = flight.order
            try:
                payload = packed_task(order.task, order.upstream)
            except BaseException as error:  # whatever users' code raises: nobody else will end the attempt
                known = isinstance(error, NotSerializableError)
                text = str(error) if known else f'task "{flight.name}" cannot be sent: {in_words(error)}'
                self._listener_later(flight, self._not_serializable(text))
                return None
            remaining = None if deadline is None else deadline - self._side.clock.monotonic()
            return wire.Start(flight.key, payload, remaining, order.watched, flight.tape is not None)

        return packed

    def _listener_later(self, flight: Flight, error: TaskError) -> None:
        self._pool.post(partial(self._pool.gone, flight))
        self._listener.attempt_ended(flight.key.index, flight.key.attempt, AttemptOutcome(error=error))

    def stop(self, index: int, attempt: int, reason: str) -> None:
        """See `ports.Backend`."""
        flight = self._flights[index, attempt]
        flight.stop()
        if self._pool.withdraw(flight):
            self._end(flight, AttemptOutcome(error=_stopped(flight), ended="unwound"))
        else:
            self._pool.tell(flight, wire.Stop(flight.key, reason))

    def insist(self, index: int, attempt: int) -> None:
        """See `ports.Backend`."""
        flight = self._flights.get((index, attempt))
        if flight is not None and self._pool.tell(flight, wire.Insist(flight.key)):
            self._pool.loop.call_later(_ANSWER_TIME, self._pool.look_after, flight)

    def snapshot(self, index: int, attempt: int) -> Snapshot:
        """See `ports.Backend`."""
        return self._flights[index, attempt].snapshot()

    def forget(self, index: int, attempt: int) -> None:
        """See `ports.Backend`."""
        self._flights.pop((index, attempt), None)

    # ---- from the pool

    def ended(self, flight: Flight, message: wire.Ended, inside: Any) -> None:
        """An attempt's code is at its end."""
        left, answer = inside
        flight.learn(message.progress, left)
        error, judge = message.error, flight.order.judge
        if isinstance(answer, Unreadable):
            text = f'task "{flight.name}": its output cannot be read in this process: {answer.why}'
            error, answer = self._not_serializable(text), None
        if error is not None and judge is not None:
            self._side.spawn(partial(self._judged, flight, error, message.ended, judge))
            return
        self._end(flight, AttemptOutcome(answer=answer, error=error, ended=message.ended))

    def _not_serializable(self, text: str) -> TaskError:
        message = self._side.mask(text)
        return TaskError(type="NotSerializableError", message=message, kind="not_serializable", retryable=False)

    def _judged(self, flight: Flight, error: TaskError, ended: str, judge: Judge) -> None:
        """On a thread: ask the user's retry function."""
        try:
            error = judge(error)
        except BaseException:  # it has no verdict
            error = replace(error, retryable=False)
        self._end(flight, AttemptOutcome(error=error, ended=ended))

    def lost(self, flight: Flight, why: str, *, others: int, began: bool) -> None:
        """The process of an attempt has ended; `began` says whether it ran before."""
        index = flight.key.index
        if flight.stopped:
            self._end(flight, AttemptOutcome(error=_stopped(flight), ended="killed"))
            return
        if not began and flight.sent < _MOST_SENT:
            self._pool.place(flight, alone=index in self._losses)
            return
        before = self._losses.get(index, 0)
        self._losses[index] = before + 1
        again = self._pool.policy.rerun_lost and not before
        error = flight.lost(why, others=others, before=before, again=again)
        self._end(flight, AttemptOutcome(error=error, ended="killed", lost=again))

    def _end(self, flight: Flight, outcome: AttemptOutcome) -> None:
        self._listener.attempt_ended(flight.key.index, flight.key.attempt, outcome)

    def heard(self, process: Any, message: Any, inside: Any) -> None:
        """A process said something about this run."""
        handle = _HANDLERS.get(type(message))
        if handle is None:
            process.kill(f"said {type(message).__name__} out of turn")
        else:
            handle(self, process, message, inside)

    def _progress(self, _process: Any, message: wire.Progress, left: Any) -> None:
        flight = self._flights.get((message.key.index, message.key.attempt))
        if flight is not None:
            flight.learn(message, left)

    def _alive(self, _process: Any, message: wire.LifeSign, _inside: Any) -> None:
        self._listener.attempt_alive(message.key.index, message.key.attempt)

    def _waits(self, _process: Any, message: wire.Waits, _inside: Any) -> None:
        key, waiting, on_person = message.key, message.waiting, message.on_person
        self._listener.attempt_waiting(key.index, key.attempt, waiting=waiting, on_person=on_person)

    def _cut_off(self, _process: Any, message: wire.CutOff, _inside: Any) -> None:
        self._listener.attempt_cut_off(message.key.index, message.key.attempt, message.error)

    def _happened(self, _process: Any, message: wire.Happened, _inside: Any) -> None:
        self._side.happened(message.event, message.fields)

    def _waited_for(self, _process: Any, message: wire.WaitedFor, _inside: Any) -> None:
        self._side.waited_for(message.limit, message.seconds)

    def _learnt(self, _process: Any, message: wire.Learnt, _inside: Any) -> None:
        self._side.learnt(message.secrets)

    def _broke(self, _process: Any, message: wire.RunBroke, _inside: Any) -> None:
        self._side.broke(message.error)

    def _asked(self, process: Any, message: wire.Asked, _inside: Any) -> None:
        self._side.spawn(partial(self._answer, process, message))

    def _on_tape(self, process: Any, message: wire.Find | wire.Keep, _inside: Any) -> None:
        flight = self._flights.get((message.key.index, message.key.attempt))
        tape = None if flight is None else flight.tape
        if isinstance(message, wire.Keep):
            kept = wire.Kept(message.key, message.number)
            if tape is None:
                process.send(kept)
            else:
                tape.keep(message.record, lambda: process.send(kept))
            return
        try:
            process.send(wire.Found(message.key, message.number, None if tape is None else tape.find(message.digest)))
        except Exception as error:  # a tape that refuses the call says why
            process.send(wire.Found(message.key, message.number, None, told(error)))

    def _effect(self, process: Any, message: wire.Effect, _inside: Any) -> None:
        self._side.spawn(partial(self._write_effect, process, message))

    def _write_effect(self, process: Any, effect: wire.Effect) -> None:
        """On a thread: an effect is written down."""
        receipts, key, value = self._side.receipts(effect.task), effect.effect, None
        try:
            if effect.step == "begin":
                receipt = receipts.begin(key)
                value = None if receipt is None else receipt.value
            elif effect.step == "finish":
                receipts.finish(key, effect.value)
            else:
                receipts.withdraw(key)
            process.send(wire.EffectTold(self.run_id, effect.number, value))
        except Exception as error:
            process.send(wire.EffectTold(self.run_id, effect.number, None, told(error)))

    def _answer(self, process: Any, question: wire.Asked) -> None:
        """On a thread: a person is asked."""
        flight = self._flights.get((question.key.index, question.key.attempt))
        if flight is not None:  # else it is over, and nobody waits for an answer
            process.send(self._side.answer(question, flight))

    def _spent(self, _process: Any, message: wire.Charged | wire.RefusedCall, _inside: Any) -> None:
        account = self._side.account
        if account is None:
            return
        if isinstance(message, wire.RefusedCall):
            account.refused()
        else:
            account.charged(message.index, message.tokens, message.cost)
            self._warn_of_budget(message.index)

    def _warn_of_budget(self, index: int) -> None:
        """Tell the processes that nothing more may be spent, before they are told anything that comes after."""
        account = self._side.account
        used_up = None if account is None else account.used_up(index)
        if used_up is not None:
            self._pool.tell_all(self.run_id, wire.OverBudget(self.run_id, *used_up))

    # ---- the end

    def close(self) -> None:
        """The run is over: processes close what it had open. Blocking, for some seconds at most."""
        self._pool.post(self._leave)
        self._closed.wait(_CLOSING_TIME)

    def _leave(self) -> None:
        self._to_close = self._pool.leave(self)
        self.closed_one(0)

    def closed_one(self, count: int = 1) -> None:
        """A process has closed what the run had open."""
        self._to_close -= count
        if self._to_close <= 0:
            self._pool.left(self)
            self._closed.set()


_HANDLERS: Final[dict[type, Callable[[ProcessRun, Any, Any, Any], None]]] = {
    wire.Progress: ProcessRun._progress,  # noqa: SLF001 - the table of this class's own methods
    wire.LifeSign: ProcessRun._alive,  # noqa: SLF001
    wire.Waits: ProcessRun._waits,  # noqa: SLF001
    wire.CutOff: ProcessRun._cut_off,  # noqa: SLF001
    wire.Happened: ProcessRun._happened,  # noqa: SLF001
    wire.WaitedFor: ProcessRun._waited_for,  # noqa: SLF001
    wire.Learnt: ProcessRun._learnt,  # noqa: SLF001
    wire.RunBroke: ProcessRun._broke,  # noqa: SLF001
    wire.Asked: ProcessRun._asked,  # noqa: SLF001
    wire.Find: ProcessRun._on_tape,  # noqa: SLF001
    wire.Keep: ProcessRun._on_tape,  # noqa: SLF001
    wire.Effect: ProcessRun._effect,  # noqa: SLF001
    wire.Charged: ProcessRun._spent,  # noqa: SLF001
    wire.RefusedCall: ProcessRun._spent,  # noqa: SLF001
}


def _stopped(flight: Flight) -> TaskError:
    text = f'task "{flight.name}" was stopped'
    return TaskError(type="TaskStopped", message=text, kind="stopped", retryable=False)

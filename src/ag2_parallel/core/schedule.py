"""The schedule of a run, as a pure state machine.

Theory of operation
===================

It is told what happened and at what time, and answers with a list of commands, to be carried out
in their order. It reads no clock, starts no thread and knows no framework: all times are numbers
that its driver passes in, and they must not go backwards.

A *task* waits for its dependencies (blocked), then for a slot (ready), runs in one or more
*attempts*, and is settled: its outcome is decided once and never changes. An attempt holds a slot
from `Start` until its outcome is decided, because its code ended or a limit or a stop hit it. A
stopped attempt gives its slot away at once, though its code has yet to end: it has the grace, is
insisted on, and is given up. So there are two state machines side by side, one for tasks and one
for attempts; `transitions` holds them as tables, and a move the tables do not have is a mistake in
this package.

    add ─► blocked ─► ready ─► running ─────────────────► settled       (a task)
                        ▲         ├─ failed ──► backoff ─┐
                        │         └─ limit ─► unwinding ─┤
                        └────────────────────────────────┘
           running ─► stopping ─► insisted ─► abandoned ─► ended        (an attempt)

The parts, each with its own concern:

    Backlog   unsettled tasks: dependencies, the queue of ready ones, a byte for each settled one
    Attempts  attempts whose code has not ended: slots, grace, insisting, giving up
    Timers    one heap of alarms; `next_wake` is the time of the first, and `tick` rings those due
    Decisions what a failure, a limit and a stop lead to
    Schedule  takes what happened, starts what can start, sees the end

Every method first notes what happened and what follows from it, then starts what can start, or the first few of it, so
starts come last among its commands; then it looks whether the run is at its end. `Stopping` comes
before what it leads to, `Stop` and `Ended` before the `Settle` or `Retry` of the same attempt, and
the `Settle` of a task before those of its dependants. Only `add` and a stop are linear in the
number of tasks; nothing recurses.

Decisions that are easy to get wrong: an answer that arrives before the `tick` of a limit counts,
one that arrives after its stop does not. Where limits fall together the wider one wins. Once the
run stops there are no retries. An outcome of a task that was never stopped itself, but whose next
attempt the run's stop prevented, is that of its last attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.core.attempts import Attempts
from ag2_parallel.core.backlog import Backlog
from ag2_parallel.core.commands import Finish, Start
from ag2_parallel.core.decisions import OUT_OF_TIME, Decisions
from ag2_parallel.core.scheduled import ScheduledTask, SchedulePolicy, Verdict
from ag2_parallel.core.standing import Standing
from ag2_parallel.core.timers import Alarm, Timers
from ag2_parallel.core.transitions import AttemptState, IllegalTransitionError, TaskEvent, TaskState
from ag2_parallel.results import TaskError, TaskStatus

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from ag2_parallel.core.commands import Command
    from ag2_parallel.core.lazy_heap import Entry
    from ag2_parallel.core.scheduled import TaskRecord

__all__ = ["Schedule", "SchedulePolicy", "ScheduledTask"]

_SUCCEEDED: Final = Verdict(TaskStatus.SUCCEEDED, None)

_HOLD: Final = 1.0
"""Seconds until a start is tried again where no thread could be had and none is going to come free."""


class Schedule(Standing):
    """Decides what starts, stops, is tried again and settles; see the theory of operation above."""

    def __init__(self, policy: SchedulePolicy, now: float, rng: random.Random) -> None:
        """Begin a run at `now`; `rng` draws the jitter of backoffs."""
        self._policy = policy
        self._max_workers = policy.max_workers
        self._max_abandoned = max(8, policy.max_workers) if policy.max_abandoned is None else policy.max_abandoned
        self._timers = Timers()
        self._attempts = Attempts(
            self._timers, grace=policy.grace, insist_for=policy.insist_for, count_waiting=policy.count_waiting
        )
        self._backlog = Backlog()
        self._decisions = Decisions(policy, rng, timers=self._timers, attempts=self._attempts, backlog=self._backlog)
        self._closed = self._finished = False
        self._paused: set[str] = set()
        self._hold: Entry | None = None
        self._patience: Entry | None = None
        self._more: Entry | None = None
        self._handlers: dict[Alarm, Callable[[Any, float, list[Command]], None]] = {
            Alarm.RUN_LIMIT: self._run_limit_up,
            Alarm.TASK_LIMIT: self._decisions.task_limit,
            Alarm.ATTEMPT_LIMIT: self._decisions.attempt_limit,
            Alarm.IDLE_LIMIT: self._decisions.idle_limit,
            Alarm.GRACE: self._attempts.insist,
            Alarm.INSISTED: self._decisions.give_up,
            Alarm.BACKOFF: self._decisions.due,
            Alarm.HOLD: self._hold_over,
            Alarm.PATIENCE: self._patience_over,
            Alarm.PROBE: lambda circuit, _now, _out: circuit.probe_due(),
            Alarm.MORE: self._more_due,
        }
        self._run_limit = None if policy.run_timeout is None else now + policy.run_timeout
        if self._run_limit is not None:
            self._timers.arm(self._run_limit, Alarm.RUN_LIMIT, self)

    # ---- input

    def add(self, tasks: Iterable[ScheduledTask], now: float) -> list[Command]:
        """Take in tasks with rising indexes; they may depend on any of the same batch and on all before."""
        if self._closed:
            raise IllegalTransitionError("tasks were added after the input was closed")
        out: list[Command] = []
        for record in self._backlog.admit(tasks):
            if record.state is TaskState.SETTLED:  # by what became of another task of the batch
                continue
            if record.task.kept is not None:
                self._decisions.keep(record, record.task.kept, out)
            elif self._decisions.task_reason is not None:
                self._decisions.settle_alone(record, Verdict(TaskStatus.SKIPPED, self._decisions.task_reason), out)
            elif record.task.problem is not None:
                self._decisions.settle(record, Verdict(TaskStatus.FAILED, "error", record.task.problem), now, out)
            elif (because := self._backlog.link(record)) is not None:
                self._decisions.settle(record, Verdict(TaskStatus.SKIPPED, "dependency", because=because), now, out)
            elif not record.unmet:
                self._backlog.queue(record, TaskEvent.RELEASED)
        return self._proceed(now, out)

    def close(self, now: float, stop_reason: str | None = None) -> list[Command]:
        """No more tasks will come; a reason is what the run's `Finish` names, if nothing came before."""
        self._closed = True
        self._decisions.stop_reason = self._decisions.stop_reason or stop_reason
        return self._proceed(now, [])

    # ---- from the attempts

    def ended(
        self, index: int, attempt: int, *, ok: bool, error: TaskError | None, how: str, now: float, lost: bool = False
    ) -> list[Command]:
        """An attempt's code is at its end, whatever became of its task meanwhile.

        Args:
            index: The task's place in the input.
            attempt: The attempt's number.
            ok: Whether it succeeded; without meaning if it was stopped before.
            error: The failure, if it did not succeed.
            how: `returned`, `unwound`, `cut` or `killed`.
            now: Monotonic time.
            lost: Whether it went down with its process, so that another follows without counting as a retry.
        """
        out: list[Command] = []
        record, was = self._attempts.end(index, attempt, how, now, out)
        if was is AttemptState.ABANDONED:
            self._timers.cancel(self._patience)
            self._patience = None
        elif was is not AttemptState.RUNNING:
            self._decisions.unwound(record, now)
        elif ok:
            self._decisions.settle(record, _SUCCEEDED, now, out)
        else:
            error = error or TaskError(type="RuntimeError", message="the attempt failed without saying why")
            record.lost += lost
            self._decisions.failed(record, Verdict(TaskStatus.FAILED, "error", error), error, now, out, lost=lost)
        return self._proceed(now, out)

    def refused(self, index: int, attempt: int, now: float) -> list[Command]:
        """No thread could be had for a `Start`: the task waits again, and fewer run at once from now on."""
        if self._attempts.state_of(index, attempt) is not AttemptState.RUNNING:
            return self.ended(index, attempt, ok=False, error=None, how="unwound", now=now)
        out: list[Command] = []
        record = self._attempts.take_back(index, attempt)
        self._decisions.circuit.taken_back(index)
        self._backlog.queue(record, TaskEvent.REFUSED)
        self._max_workers = max(1, self._attempts.running)
        if self._decisions.task_reason is not None:
            self._decisions.settle_alone(record, self._decisions.undone(record), out)
        elif not self._attempts.running and self._hold is None:
            self._hold = self._timers.arm(now + _HOLD, Alarm.HOLD, self)
        return self._proceed(now, out)

    def cut_off(self, index: int, attempt: int, error: TaskError, now: float) -> list[Command]:
        """An attempt may make no more model calls: it is stopped, and its task fails with `error` for good."""
        out: list[Command] = []
        self._decisions.cut_off(index, attempt, error, now, out)
        return self._proceed(now, out)

    def alive(self, index: int, attempt: int, now: float) -> None:
        """An attempt gave a sign of life: its idle limit starts anew. Late ones are ignored."""
        self._attempts.alive(index, attempt, now)

    def waiting(self, index: int, attempt: int, flag: bool, now: float, *, on_person: bool = False) -> None:  # noqa: FBT001 - a message
        """An attempt began (True) or ceased to wait for a limit or a person; its idle limit does not run meanwhile.

        Where waiting for limits does not count, its own limit and its task's do not run either.
        """
        self._attempts.waiting(index, attempt, begins=flag, on_person=on_person, now=now)

    # ---- time

    def next_wake(self) -> float | None:
        """When `tick` has something to look at, at the earliest; None if nothing is timed."""
        return self._timers.next_time()

    def tick(self, now: float) -> list[Command]:
        """Do what is due by `now`."""
        out: list[Command] = []
        while (rung := self._timers.ring(now)) is not None:
            alarm, target = rung
            self._handlers[alarm](target, now, out)
        return self._proceed(now, out)

    # ---- from the caller

    def stop(self, reason: str, *, stop_running: bool, now: float) -> list[Command]:
        """Start nothing any more. Running attempts are stopped too, or finish by themselves without retries.

        The first reason stays the run's. A later call changes something only if it is the first with `stop_running`.
        """
        out: list[Command] = []
        if not self._finished:
            self._decisions.begin_stop(reason, stop_running=stop_running, now=now, out=out)
        return self._proceed(now, out)

    def exhaust(self, reason: str, now: float) -> list[Command]:
        """Nothing more may start. The run stops, for `reason`, as soon as a task waits, and finishes if none does."""
        self._decisions.exhausted = reason
        return self._proceed(now, [])

    def pause(self, now: float, by: str = "user") -> list[Command]:
        """Start nothing until whoever paused resumes; what runs goes on, and so do the limits."""
        self._paused.add(by)
        return self._proceed(now, [])

    def resume(self, now: float, by: str = "user") -> list[Command]:
        """Start things again, unless somebody else paused too."""
        self._paused.discard(by)
        return self._proceed(now, [])

    def set_max_workers(self, count: int, now: float) -> list[Command]:
        """Let `count` attempts, at least one, run at once; what runs beyond that goes on."""
        self._max_workers = max(1, count)
        return self._proceed(now, [])

    # ---- what starts, and the end

    def _proceed(self, now: float, out: list[Command]) -> list[Command]:
        """The end of every method: start what can start, and look whether that was all."""
        self._decisions.stop_if_exhausted(now, out)
        if self._decisions.task_reason is None and not self._paused and self._hold is None:
            self._fill(now, out)
        all_settled = self._backlog.settled == self._backlog.added
        if self._closed and all_settled and not self._finished and not self._attempts.unwinding:
            self._finished = True
            self._timers.clear()
            out.append(Finish(self._decisions.stop_reason))
        return out

    def _fill(self, now: float, out: list[Command]) -> None:
        if self._run_limit is not None and now >= self._run_limit:
            return  # its alarm is about to stop the run
        if self._more is not None:
            return  # the next few start when it rings, however much happens until then
        circuit, room = self._decisions.circuit, self._policy.starts_at_once
        while self._backlog.ready and self._attempts.running < self._max_workers and circuit.lets_start:
            if room == 0:
                self._more = self._timers.arm(now, Alarm.MORE, self)
                return
            if self._blocked:
                if self._patience is None:
                    self._patience = self._timers.arm(now + self._policy.abandoned_patience, Alarm.PATIENCE, self)
                return
            record = self._backlog.take()
            if record.limit is not None and now >= record.limit:
                self._decisions.settle(record, OUT_OF_TIME, now, out)
                if self._decisions.task_reason is not None:
                    return
            else:
                self._start(record, now, out)
                room = room and room - 1

    def _start(self, record: TaskRecord, now: float, out: list[Command]) -> None:
        record.move(TaskEvent.STARTED)
        self._decisions.circuit.started(record.task.index)
        deadline = self._attempts.begin(record, now)
        for limit in (record.limit, self._run_limit):
            if limit is not None and (deadline is None or limit < deadline):
                deadline = limit
        out.append(Start(record.task.index, record.attempts, deadline))

    @property
    def _blocked(self) -> bool:
        """Whether so many attempts are abandoned that nothing new may start."""
        return self._attempts.abandoned >= self._max_abandoned

    def _hold_over(self, _target: object, _now: float, _out: list[Command]) -> None:
        self._hold = None

    def _more_due(self, _target: object, _now: float, _out: list[Command]) -> None:
        self._more = None

    def _patience_over(self, _target: object, now: float, out: list[Command]) -> None:
        self._patience = None
        if self._blocked and self._backlog.ready and not self._paused:
            self._decisions.begin_stop("abandoned_threads", stop_running=False, now=now, out=out)

    def _run_limit_up(self, _target: object, now: float, out: list[Command]) -> None:
        if not self._closed or self._backlog.settled < self._backlog.added:
            self._decisions.begin_stop("run_timeout", stop_running=True, now=now, out=out)

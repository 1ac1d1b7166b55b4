"""One run on the engine loop: tells the schedule what happened and does what it answers.

    feeder ── add, close ──►┌──────────┐── Start, Stop, Insist ──► backend (worker threads)
    worker ── ended, alive ►│ Run      │── Settle ──► result ──► outlet (whoever reads)
    timer  ── tick ────────►│ Schedule │── events ──► broadcast
    caller ── stop ────────►└──────────┘

Everything here happens on the loop, one thing after another, so nothing is locked. What comes from
other threads comes through `Engine.post`.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ag2_parallel import events
from ag2_parallel.core import commands
from ag2_parallel.core.alarm import Alarm
from ag2_parallel.core.control import RunControl
from ag2_parallel.core.entries import Entry, NewTask, RunHooks, as_gone
from ag2_parallel.core.notices import Notices
from ag2_parallel.core.outcome import cut_short, finished_result, was_cut
from ag2_parallel.core.publishing import Publisher
from ag2_parallel.core.wording import internal_error, worded
from ag2_parallel.ports import AttemptOrder, AttemptOutcome
from ag2_parallel.results import ParallelTaskResult, TaskError, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ag2_parallel.core.broadcast import Broadcast
    from ag2_parallel.core.engine import Engine
    from ag2_parallel.core.kept import Kept
    from ag2_parallel.core.outlet import Outlet
    from ag2_parallel.core.schedule import Schedule
    from ag2_parallel.core.upstream import Upstream
    from ag2_parallel.ports import Backend, Clock
    from ag2_parallel.records import RunJournal
    from ag2_parallel.tasks import ParallelTask
    from ag2_parallel.usage import Usage


T = TypeVar("T")

_log = logging.getLogger("ag2_parallel")

_CHUNK = 1000
"""Tasks added in one turn of the loop, which takes some milliseconds; other runs and timers get their turn in between."""


class Run(RunControl):
    """Drives one schedule."""

    def __init__(
        self,
        *,
        engine: Engine,
        schedule: Schedule,
        clock: Clock,
        outlet: Outlet,
        broadcast: Broadcast,
        upstream: Upstream,
        hooks: RunHooks,
        journal: RunJournal | None = None,
    ) -> None:
        """Drive `schedule`; `backend` is set before anything is added."""
        self.backend: Backend
        self.metrics: dict[str, Any] = {"abandoned": 0, "peak": 0}
        self.stop_reason: str | None = None
        self.internal_error: Exception | None = None
        self.journal_error: Exception | None = None
        self._engine = engine
        self._schedule = schedule
        self._clock = clock
        self._broadcast = broadcast
        self._upstream = upstream
        self._hooks = hooks
        self._closed = False
        self._entries: dict[int, Entry] = {}
        self._kept: dict[int, Kept] = {}
        self._alarm = Alarm(engine.loop, clock, lambda: self._guarded(self._tick))
        self._amended: dict[int, tuple[str, Usage]] = {}
        self.notices = Notices(broadcast)
        self._journal = journal
        self._publisher = Publisher(outlet=outlet, notices=self.notices, hooks=hooks, post=self._post, journal=journal)
        self.counts = self._publisher.counts

    # ---- from other threads

    def _post(self, function: Callable[[], None]) -> None:
        self._engine.post(partial(self._guarded, function))

    def _guarded(self, function: Callable[[], None]) -> None:
        if self.internal_error is not None:
            return
        try:
            function()
        except Exception as error:  # a mistake of ours must end the run, never hang it
            self._break_off(error)

    def add(self, batch: Sequence[NewTask]) -> None:
        """Take tasks from the feeder; nothing of a batch starts before all of it is in, so that priorities hold."""
        self.pause(by="adding")
        for start in range(0, len(batch), _CHUNK):
            chunk = batch[start : start + _CHUNK]
            self._post(partial(self._add, chunk))
        self.resume(by="adding")

    def add_kept(self, batch: Callable[[], Sequence[NewTask]]) -> None:
        """Take tasks whose results stand, those that `batch` gives on the loop: none of them starts."""
        self._post(lambda: self._add(batch()))

    def close(self, stop_reason: str | None = None) -> None:
        """No more tasks will come."""
        self._post(lambda: self._close(stop_reason))

    def journal_failed(self, error: Exception) -> None:
        """Nothing can be written any more: the run stops, and what is committed stays."""
        self._post(lambda: self._journal_failed(error))

    def hurry(self, seconds: float) -> None:
        """What is not written down in so many seconds from now is published without; from any thread."""
        self._post(lambda: self._publisher.hurry(self._engine.loop, seconds))

    def publish_now(self) -> None:
        """On the loop: what is not written down yet is published without."""
        self._publisher.give_up_journal()

    def on_loop(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """What `function` returns on the loop, where the run does not change meanwhile; from any other thread."""
        return self._engine.ask(function, timeout)

    def attempt_ended(self, index: int, attempt: int, outcome: AttemptOutcome) -> None:
        """See `ports.BackendListener`."""
        self._post(lambda: self._attempt_ended(index, attempt, outcome))

    def attempt_waiting(self, index: int, attempt: int, *, waiting: bool, on_person: bool) -> None:
        """See `ports.BackendListener`."""
        self._post(partial(self._waiting, index, attempt, waiting, on_person=on_person))

    # ---- on the loop

    def _journal_failed(self, error: Exception) -> None:
        self.journal_error = error
        self.notices.why["journal_error"] = str(error)
        self._journal = None
        self._publisher.give_up_journal()
        self._do(self._schedule.stop("journal_error", stop_running=True, now=self._clock.monotonic()))

    def _close(self, stop_reason: str | None = None) -> None:
        self._closed = True
        self._do(self._schedule.close(self._clock.monotonic(), stop_reason))

    def _add(self, batch: Sequence[NewTask]) -> None:
        if self._closed:
            return  # read by a source that was given up: no part of the run
        now = self._clock.monotonic()
        batch = [new if new.kept else self._with_its_upstream(new) for new in batch]
        for new in batch:
            index = new.scheduled.index
            if new.kept is not None:
                self._kept[index] = new.kept
            else:
                self._entries[index] = Entry(
                    new.task, new.scheduled.depends_on, new.limits, new.judge, now, new.fingerprint
                )
        self._do(self._schedule.add([new.scheduled for new in batch], now))

    def _with_its_upstream(self, new: NewTask) -> NewTask:
        """The task with the results it depends on held for it, or as a failure if they are gone."""
        settled = [index for index in new.scheduled.depends_on if self._schedule.status_of(index) is not None]
        gone = self._upstream.hold(new.scheduled.depends_on, settled)
        return new if not gone else as_gone(new, [self._upstream.name_of(index) for index in gone])

    def _attempt_ended(self, index: int, attempt: int, outcome: AttemptOutcome) -> None:
        entry = self._entries.get(index)
        if entry is not None:
            entry.outcome = outcome
        ok = outcome.error is None
        now = self._clock.monotonic()
        how, lost = outcome.ended, outcome.lost
        self._do(self._schedule.ended(index, attempt, ok=ok, error=outcome.error, how=how, now=now, lost=lost))

    def _waiting(self, index: int, attempt: int, waiting: bool, *, on_person: bool) -> None:  # noqa: FBT001 - a message
        self._schedule.waiting(index, attempt, waiting, self._clock.monotonic(), on_person=on_person)
        self._arm()

    def _tick(self) -> None:
        self._do(self._schedule.tick(self._clock.monotonic()))

    def _do(self, todo: Iterable[commands.Command]) -> None:
        queue = deque(todo)
        while queue:
            command = queue.popleft()
            queue.extend(_HANDLERS[type(command)](self, command) or ())
        self._arm()

    def _break_off(self, error: Exception) -> None:
        """Settle what is left after an internal error and end the run."""
        if self.internal_error is not None:
            return
        self.internal_error = error
        _log.exception("internal error of ag2-parallel; the run ends here, please report this")
        for index, entry in list(self._entries.items()):
            if entry.settled is None:
                result = ParallelTaskResult(
                    name=entry.task.name, index=index, status=TaskStatus.FAILED, error=internal_error(error)
                )
                self._publisher.settled(result, entry.fingerprint, cut=True, alone=False)
            with suppress(Exception):
                self.backend.stop(index, len(entry.log.records) + 1, "cancelled")
        self._publisher.give_up_journal()
        self.stop_reason = "internal_error"
        self._broadcast.emit(events.RunFinished, stop_reason=self.stop_reason, counts=dict(self.counts))
        self._hooks.finished()

    def _arm(self) -> None:
        self._alarm.set(self._schedule.next_wake())

    def _start(self, command: commands.Start) -> Iterable[commands.Command]:
        entry = self._entries[command.index]
        order = AttemptOrder(
            index=command.index,
            attempt=command.attempt,
            task=entry.task,
            upstream=self._upstream.of(entry.depends_on),
            deadline=command.deadline,
            judge=entry.judge,
            watched=entry.limits.idle_timeout is not None,
        )
        now, stamp = self._clock.monotonic(), self._clock.now()  # at one moment: results are laid side by side by both
        if self._journal is not None:
            self._journal.attempt_started(command.index, entry.task.name, entry.fingerprint, command.attempt)
        if not self.backend.start(order):
            if self._journal is not None:
                self._journal.attempt_ended(command.index, command.attempt, cut=True)
            self.notices.warn("no thread could be started; fewer tasks run at once")
            return self._schedule.refused(command.index, command.attempt, now)
        entry.outcome = None
        entry.log.started(command.attempt, now, stamp if command.attempt == 1 else None)
        self._tell(events.AttemptStarted, entry.task, command)
        return ()

    def _stop(self, command: commands.Stop) -> None:
        self.backend.stop(command.index, command.attempt, command.reason)
        self._tell(events.AttemptStopping, self._entries[command.index].task, command, reason=command.reason)

    def _ended(self, command: commands.Ended) -> None:
        entry = self._entries[command.index]
        entry.log.ended(command.attempt, command.how)
        self._tell(events.AttemptEnded, entry.task, command, ended=command.how)
        if entry.log.is_decided(command.attempt) and command.how != "abandoned":
            entry.log.unwound(command.attempt, self.backend.snapshot(command.index, command.attempt))
            self.backend.forget(command.index, command.attempt)
        if entry.settled is not None:
            if entry.settled.attempts == command.attempt and entry.settled.ended != command.how:
                self._amended[command.index] = command.how, entry.log.usage
            self._drop_if_over(command.index, entry)

    def _returned(self, command: commands.Returned) -> None:
        self.backend.forget(command.index, command.attempt)

    def _retry(self, command: commands.Retry) -> None:
        entry = self._entries[command.index]
        status = TaskStatus.TIMED_OUT if self._timed_out(command) else TaskStatus.FAILED
        self._decide(entry, command.index, command.attempt, status, command.error)
        if self._journal is not None:
            self._journal.attempt_ended(command.index, command.attempt, cut=cut_short(status, command.error))
        entry.log.backs_off(command.delay, self._clock.monotonic())
        self._tell(events.TaskRetrying, entry.task, command, delay=command.delay, error=str(command.error))

    @staticmethod
    def _timed_out(command: commands.Retry) -> bool:
        return command.error.kind == "timeout" and command.error.status_code is None and not command.error.traceback

    def _settle(self, command: commands.Settle) -> None:
        kept = self._kept.pop(command.index, None)
        if kept is not None:
            self._upstream.settled(kept)
            self._publisher.kept(kept)
            return
        entry = self._entries[command.index]
        now = self._clock.monotonic()
        error = command.error or worded(entry, command, self._upstream, self.notices.why)
        self._upstream.release(entry.depends_on)
        if command.attempts and not entry.log.is_decided(command.attempts):
            self._decide(entry, command.index, command.attempts, command.status, error)
        answer = entry.outcome.answer if entry.outcome is not None and command.status is TaskStatus.SUCCEEDED else None
        result = finished_result(
            entry.task, command, error, entry.log, answer, read_at=entry.read_at, now=now, stamp=self._clock.now()
        )
        entry.settled = result
        self._drop_if_over(command.index, entry)
        self._upstream.settled(result)
        self._publisher.settled(result, entry.fingerprint, cut=was_cut(command), alone=not entry.depends_on)

    def _decide(self, entry: Entry, index: int, attempt: int, status: TaskStatus, error: TaskError | None) -> None:
        """It is known what became of an attempt: keep what it had."""
        snapshot = self.backend.snapshot(index, attempt)
        entry.log.decided(attempt, status, error, snapshot, self._clock.monotonic())
        if entry.log.how_ended(attempt) is not None:
            self.backend.forget(index, attempt)

    def _drop_if_over(self, index: int, entry: Entry) -> None:
        if entry.settled is not None and not entry.log.unwinding():
            del self._entries[index]

    def _stopping(self, command: commands.Stopping) -> None:
        self.notices.stopping(command)
        self._hooks.stopping()
        if not self._closed:
            self.close()  # a source that is stuck must not hold up the end

    def _finish(self, command: commands.Finish) -> None:
        self.stop_reason = command.stop_reason
        self._alarm.cancel()
        self.metrics |= {"abandoned": self._schedule.abandoned, "peak": self._schedule.peak_running}
        self._publisher.when_all_out(self._over)

    def _over(self) -> None:
        self._broadcast.emit(events.RunFinished, stop_reason=self.stop_reason, counts=dict(self.counts))
        self._hooks.finished()

    def how_it_ended(self, result: ParallelTaskResult) -> tuple[str, Usage] | None:
        """How the attempt of a result published as `stopping` ended in the meantime, and what the task used in all."""
        return self._amended.pop(result.index, None)

    def _tell(self, event: type[events.Event], task: ParallelTask, command: Any, **fields: Any) -> None:
        self._broadcast.emit(event, task=task.name, index=command.index, attempt=command.attempt, **fields)


_HANDLERS: Mapping[type, Callable[[Run, Any], Iterable[commands.Command] | None]] = {
    commands.Start: Run._start,  # noqa: SLF001 - the table of this class's own methods
    commands.Stop: Run._stop,  # noqa: SLF001
    commands.Insist: lambda run, command: run.backend.insist(command.index, command.attempt),
    commands.Ended: Run._ended,  # noqa: SLF001
    commands.Returned: Run._returned,  # noqa: SLF001
    commands.Retry: Run._retry,  # noqa: SLF001
    commands.Settle: Run._settle,  # noqa: SLF001
    commands.Stopping: Run._stopping,  # noqa: SLF001
    commands.Tripped: lambda run, command: run.notices.tripped(command),
    commands.Recovered: lambda run, command: run.notices.recovered(command),
    commands.Finish: Run._finish,  # noqa: SLF001
}

"""The one place that knows which parts stand behind the ports, and joins them into a run."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import random
import threading
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from ag2_parallel.attempt_services import attempt_services
from ag2_parallel.backends.local import LocalBackend
from ag2_parallel.core.broadcast import Broadcast
from ag2_parallel.core.entries import RunHooks
from ag2_parallel.core.feeder import Feeder
from ag2_parallel.core.intake import Intake, LazyIntake, dependants
from ag2_parallel.core.journal_notes import JournalNotes
from ag2_parallel.core.lag_watch import LagWatch
from ag2_parallel.core.metrics import RunMetrics
from ag2_parallel.core.outlet import Outlet
from ag2_parallel.core.run import Run
from ag2_parallel.core.run_names import new_run_id
from ag2_parallel.core.schedule import Schedule
from ag2_parallel.core.scheduled import SchedulePolicy
from ag2_parallel.core.submitted import Submitted
from ag2_parallel.core.task_source import task_source
from ag2_parallel.core.upstream import Upstream
from ag2_parallel.events import RunStarted
from ag2_parallel.preparation import Preparation
from ag2_parallel.readable_run import ReadableRun
from ag2_parallel.redaction import Redactor
from ag2_parallel.reporting.progress import Progress
from ag2_parallel.run_record import RunRecord, store_of
from ag2_parallel.workers.attempt import CURRENT, Attempt
from ag2_parallel.workers.console import ConsoleRouter
from ag2_parallel.workers.locating import locate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ag2_parallel.core.kept import Kept
    from ag2_parallel.core.resuming import ResumePolicy
    from ag2_parallel.core.task_source import TaskSource
    from ag2_parallel.machinery import Lease, Machinery
    from ag2_parallel.options import Options
    from ag2_parallel.ports import Backend, Observer
    from ag2_parallel.results import ParallelTaskResult

_log = logging.getLogger("ag2_parallel")

_STARTS_AT_ONCE = 8
"""A thread holds the engine up until its agents are built: what the ones before it ask for goes in between."""

_AHEAD = 2
"""Tasks that are read from a source and have not ended, for each worker."""

_LEFT_TO_WRITE = 0.2
"""Seconds after the grace that a stopped run waits for its journal."""

_OBSERVERS_TIME = 1.0
"""Seconds that observers have at the end of a run to see what is queued."""


class ActiveRun(ReadableRun):
    """One run, wired up."""

    def __init__(
        self,
        options: Options,
        *,
        streamed: bool,
        run_id: str | None,
        observers: Sequence[Observer] = (),
        policy: ResumePolicy | None = None,
        known: Mapping[str, ParallelTaskResult] | None = None,
    ) -> None:
        """Choose the parts; nothing starts.

        `observers` are told of events beside those of the options; tasks with a result in `known` do not run.
        """
        self.run_id = run_id or new_run_id()
        self._options = options
        self.outlet = Outlet(streamed=streamed)
        self.redactor = Redactor(options.redact)
        self.redactor.learn(options.llm_config)
        self.redactor.learn_environment(os.environ)
        self._progress = Progress(options.progress, asks=callable(options.human_input))
        self._preparation = Preparation(options, self.redactor, lambda why, stop: self.run.exhaust(why, stop=stop))
        self._console = ConsoleRouter(options.console, self.redactor)
        self._record = RunRecord(store_of(options.journal), policy, self.redactor, known)
        notes = [] if options.journal is None else [JournalNotes(lambda: self._record.journal)]
        observers = [*observers, *options.observers, *self._progress.observers, *notes]
        self._broadcast = Broadcast(observers, self.run_id, self.redactor.text)
        self._metrics = RunMetrics()
        self._submitted: Submitted | None = None
        self._hooks = ExitStack()
        self.metrics: dict[str, Any] = {}
        self._hurried = False

    # ---- before the start

    @property
    def tasks(self) -> TaskSource:
        """The tasks as they were taken."""
        return self._tasks

    def take(self, tasks: Any) -> None:
        """Take the tasks; a list is checked whole.

        Raises:
            ConfigurationError: With every problem.
        """
        self._preparation.check_options()
        self._tasks = task_source(tasks, Intake(self._options, self._preparation.problems), locate)

    def open(self, lease: Callable[[], Lease]) -> Lease:
        """Machinery for the run, with its journal open; what stands of earlier lives is decided. Blocking.

        Raises:
            JournalError: The journal cannot be opened, or the run is held by another process.
            ConfigurationError: A task would do something else than before, and that is to be an error.
        """
        held = lease()
        try:
            self._preparation.open_cassette()
            self._tasks.listed = self._record.open(
                self.run_id,
                self._options,
                held.machinery,
                listed=self._tasks.listed,
                source=self._tasks.found_by,
                failed=lambda error: self.run.journal_failed(error),  # noqa: PLW0108 - there is no run yet
            )
            if self._record.goes_on:
                self._preparation.go_on()
        except BaseException:
            self._preparation.close()
            held.end()
            raise
        held.on_end(self._let_go)
        return held

    def _let_go(self) -> None:
        """Nobody reads results any more; a journal must not stay held where the run was left before its end."""
        if self.outlet.finished:
            self._record.let_go()
        else:
            threading.Thread(target=self._record.let_go, name="ag2-parallel-closer", daemon=True).start()

    def _lazy_intake(self) -> LazyIntake:
        return LazyIntake(Intake(self._options, self._preparation.problems), self._record.decide)

    def start_open(self, machinery: Machinery) -> Submitted:
        """Start with what was taken, and keep the input open for more."""
        listed = self._tasks.listed or []
        self._wire(machinery, total=None, upstream=Upstream({}, open_ended=True), open_ended=True)
        intake = self._lazy_intake()
        self._submitted = Submitted(self._feeder, intake, machinery.threads.run)
        if self._tasks.source is not None:
            self._feeder.feed_source(self._tasks.source, intake)
        else:
            intake.after(listed)
            self._feeder.feed_list(listed)
        return self._submitted

    def start(self, machinery: Machinery) -> asyncio.Task[None] | None:
        """Start. Where the source is async, the returned task reads it on the caller's loop."""
        tasks = self._tasks
        if tasks.listed is not None:
            upstream = Upstream(dependants(tasks.listed), open_ended=False)
            self._wire(machinery, total=len(tasks.listed), upstream=upstream)
            self._feeder.feed_list(tasks.listed)
            tasks.listed = None
            return None
        self._wire(machinery, total=None, upstream=Upstream({}, open_ended=True))
        intake = self._lazy_intake()
        if tasks.is_async:
            return asyncio.create_task(self._feeder.feed_async(tasks.source, intake))
        self._feeder.feed_source(tasks.source, intake)
        return None

    def _wire(self, machinery: Machinery, *, total: int | None, upstream: Upstream, open_ended: bool = False) -> None:
        options = self._options
        self._machinery = machinery
        counted = None if open_ended else self._tasks.total
        self._workers = workers = options.workers_for(total)
        policy = SchedulePolicy(
            max_workers=workers,
            handle_errors=options.handle_errors,
            grace=options.grace,
            max_abandoned=options.max_abandoned,
            run_timeout=options.run_timeout,
            breaker=options.breaker,
            count_waiting=options.count_waiting,
            insist_for=options.insist_for,
            starts_at_once=_STARTS_AT_ONCE,
        )
        started = machinery.clock.monotonic()
        self.run = Run(
            engine=machinery.engine,
            schedule=Schedule(policy, started, random.Random()),  # noqa: S311 - spreads retries
            clock=machinery.clock,
            outlet=self.outlet,
            broadcast=self._broadcast,
            upstream=upstream,
            hooks=RunHooks(
                settled=self._settled,
                kept=self._kept,
                published=self._published,
                stopping=lambda: self._feeder.stop(),  # noqa: PLW0108 - there is no feeder yet
                finished=self._finished,
            ),
            journal=self._record.journal,
        )
        self.run.backend = self._backend(
            machinery, run_limit=None if options.run_timeout is None else started + options.run_timeout
        )
        self._feeder = Feeder(
            self.run,
            partial(self._preparation.prepare, machinery),
            partial(self._preparation.is_prepared, machinery),
            _AHEAD * workers,
            open_ended=open_ended,
        )
        self._lag = LagWatch(machinery.engine, self.run.notices.warn)
        self._started = machinery.clock.monotonic()
        self._open()
        how = self.how_to_resume
        self._broadcast.emit(RunStarted, total=counted, max_workers=workers, how_to_resume=how)
        self._record.tell(self.run_id, self._broadcast.emit, whole=total is not None)

    def _backend(self, machinery: Machinery, *, run_limit: float | None) -> Backend:
        services = attempt_services(
            self.run_id,
            self._options,
            machinery,
            self._preparation,
            redactor=self.redactor,
            broadcast=self._broadcast,
            console=self._console.sink,
            waited_for=self._metrics.count_wait,
            run_limit=run_limit,
            journal=self._record.journal,
        )
        if self._options.processes is None:
            return LocalBackend(
                spawn=machinery.threads.run,
                make_attempt=lambda order, listener: Attempt(order, services, listener),
                listener=self.run,
                loop=machinery.engine.loop,
            )
        from ag2_parallel.process_runs import ProcessSide

        broke, waited_for = lambda error: self._feeder.failed(error), self._metrics.count_wait  # noqa: PLW0108 - later
        side = ProcessSide(self._options, machinery, services, self._preparation.spending, waited_for, broke)
        backend = side.opened(self._workers, self.run)
        self._hooks.callback(backend.close)
        return backend

    # ---- while it runs

    @property
    def is_started(self) -> bool:
        """Whether it is wired up."""
        return hasattr(self, "_started")

    def _open(self) -> None:
        self._hooks.enter_context(self._progress)
        self._console.open()
        atexit.register(self.exit)
        if (outer := CURRENT.get()) is not None:  # a run inside a task ends with that task
            stop = partial(self.run.stop, "cancelled", stop_running=True)
            self._hooks.enter_context(outer.signal.on_stop(stop))
        self._machinery.engine.post(partial(self._preparation.already_used, self._record.known.usage))
        self._machinery.engine.post(self._lag.begin)

    def _settled(self, result: ParallelTaskResult) -> None:
        self._metrics.count(result)
        self._preparation.forget(result.index)

    def _kept(self, kept: Kept) -> None:
        self._metrics.count_kept(kept)
        if self._submitted is not None:
            self._submitted.settled(kept.index, kept.load)

    def _published(self, result: ParallelTaskResult) -> None:
        if not self.outlet.streamed:
            self._feeder.handed_out()
        if self._submitted is not None:
            self._submitted.settled(result.index, lambda: self.presented(result))
        if result.console and self._options.console == "grouped":
            self._broadcast.call(lambda: self._console.show_block(result.name, result.console))
        if not result.ok and self._options.handle_errors == "ignore":
            _log.warning("run %s: task %r %s: %s", self.run_id, result.name, result.status, result.error)

    def _finished(self) -> None:
        """Everything is settled and nothing unwinds: close up on a thread that may block."""
        self._lag.end()
        self._feeder.stop()
        wall = self._machinery.clock.monotonic() - self._started
        self.metrics = self._record.metrics | self._metrics.to_dict(
            wall=wall,
            workers=self._workers,
            peak=self.run.metrics["peak"],
            abandoned=self.run.metrics["abandoned"],
            lag_max=self._lag.worst,
        )
        self._machinery.threads.run(self._close)

    def _close(self) -> None:
        try:
            self._preparation.close()
            self._broadcast.close(_OBSERVERS_TIME / 5 if self._hurried else _OBSERVERS_TIME)
            self._record.close(self.run.stop_reason, hurried=self._hurried)
            self._console.close()
            self._hooks.close()
        finally:
            if self._submitted is not None:
                self._submitted.finished()
            self.outlet.finish()
            self.leave()

    def set_max_workers(self, count: int) -> None:
        """Let `count` tasks run at once from now on, and read as far ahead as they need."""
        self.run.set_max_workers(count)
        self._feeder.widen(_AHEAD * count)

    def stop(self, reason: str, *, stop_running: bool) -> None:
        """Start nothing more and, if wanted, stop what runs."""
        self._feeder.stop()
        self.run.stop(reason, stop_running=stop_running)
        if stop_running:
            self._hurried = True
            self.run.hurry(self._options.grace + _LEFT_TO_WRITE)

    def exit(self) -> None:
        """The interpreter ends: stop everything, wait for `grace` and a little."""
        if os.getpid() == self._machinery.engine.pid:  # a forked child has the hook and not the run
            self.stop("cancelled", stop_running=True)
            self.outlet.wait_finished(self._options.grace + 0.8)

    def leave(self) -> None:
        """Wait for nothing any more, at the interpreter's exit either."""
        atexit.unregister(self.exit)

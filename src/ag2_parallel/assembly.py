"""The one place that knows which parts stand behind the ports, and joins them into a run."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import os
import random
from collections.abc import AsyncIterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ag2_parallel import validation
from ag2_parallel.backends.local import LocalBackend
from ag2_parallel.core.broadcast import Broadcast
from ag2_parallel.core.entries import RunHooks
from ag2_parallel.core.feeder import Feeder
from ag2_parallel.core.intake import Intake, LazyIntake, dependants, refuse_odd_input
from ag2_parallel.core.lag_watch import LagWatch
from ag2_parallel.core.metrics import RunMetrics
from ag2_parallel.core.outlet import Outlet
from ag2_parallel.core.run import Run
from ag2_parallel.core.run_names import default_directory, new_run_id
from ag2_parallel.core.schedule import Schedule
from ag2_parallel.core.scheduled import SchedulePolicy
from ag2_parallel.core.submitted import Submitted
from ag2_parallel.core.upstream import Upstream
from ag2_parallel.events import RunStarted
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.frameworks.registry import Frameworks
from ag2_parallel.gate.budget import NamedModel, Spending
from ag2_parallel.gate.on_demand import GateOnDemand
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.redaction import Redactor
from ag2_parallel.reporting.log_lines import ProgressLines
from ag2_parallel.run_results import RunResults
from ag2_parallel.workers.attempt import CURRENT, Attempt, RunServices
from ag2_parallel.workers.claims import Claims
from ag2_parallel.workers.console import ConsoleRouter
from ag2_parallel.workers.questions import Questions
from ag2_parallel.workers.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.machinery import Machinery
    from ag2_parallel.options import Options
    from ag2_parallel.ports import Observer
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.tasks import ParallelTask

_log = logging.getLogger("ag2_parallel")

_SETTLING_TIME = 0.5

_OBSERVERS_TIME = 1.0
"""Seconds that observers have at the end of a run to see what is queued."""


class ActiveRun:
    """One run, wired up."""

    def __init__(
        self, options: Options, *, streamed: bool, run_id: str | None, observers: Sequence[Observer] = ()
    ) -> None:
        """Choose the parts; nothing starts. `observers` are told of events beside those of the options."""
        self.run_id = run_id or new_run_id()
        self._options = options
        self._streamed = streamed
        self._source: Any = None
        self._listed: list[NewTask] | None = None
        self.outlet = Outlet(streamed=streamed)
        self.redactor = Redactor(options.redact)
        self.redactor.learn(options.llm_config)
        observers = [*observers, *options.observers, *([ProgressLines()] if options.progress is not False else [])]
        self._broadcast = Broadcast(observers, self.run_id)
        self._frameworks = Frameworks(options.llm_config)
        self._console = ConsoleRouter(options.console, self.redactor)
        self._resources = Resources(options.resources)
        self._resources_open = False
        self._spending = (
            None
            if options.budget is None
            else Spending(
                options.budget,
                on_reached=lambda why: self.run.exhaust(why, stop=False),
                on_refused=lambda why: self.run.exhaust(why, stop=True),
            )
        )
        self._metrics = RunMetrics()
        self._submitted: Submitted | None = None
        self._hooks = ExitStack()
        self.metrics: dict[str, Any] = {}

    # ---- before the start

    def take(self, tasks: Any) -> None:
        """Take the tasks; a list is checked whole.

        Raises:
            ConfigurationError: With every problem.
        """
        refuse_odd_input(tasks)
        if isinstance(tasks, list | tuple):
            self._listed = Intake(self._options, self._agent_problems).whole(tasks)
        else:
            self._source = tasks

    def _agent_problems(self, task: ParallelTask) -> list[validation.Problem]:
        self.redactor.learn(task.agent_config)
        problems = self._frameworks.problems(task)
        if self._spending is None or problems:
            return problems
        unpriced = self._spending.problems(NamedModel(*each) for each in self._frameworks.models(task))
        return [validation.Problem(f'task "{task.name}": {text}') for text in unpriced]

    def _prepare(self, task: ParallelTask) -> None:
        """Open the resources and import what the task needs, once each; on the feeder's thread."""
        if not self._resources_open:
            self._resources.open()
            if self._spending is not None:
                self._spending.load_prices()
            self._resources_open = True
        self._frameworks.warm_up_for(task)

    def _is_prepared(self, task: ParallelTask) -> bool:
        return self._resources_open and self._frameworks.is_warm_for(task)

    def start_open(self, machinery: Machinery) -> Submitted:
        """Start with what was taken, and keep the input open for more."""
        listed = self._listed or []
        self._wire(machinery, total=None, upstream=Upstream({}, open_ended=True), open_ended=True)
        intake = LazyIntake(Intake(self._options, self._agent_problems))
        self._submitted = Submitted(self._feeder, intake, machinery.threads.run)
        if self._source is not None:
            self._feeder.feed_source(self._source, intake)
        else:
            intake.after(listed)
            self._feeder.feed_list(listed)
        return self._submitted

    def start(self, machinery: Machinery) -> asyncio.Task[None] | None:
        """Start. Where the source is async, the returned task reads it on the caller's loop."""
        if self._listed is not None:
            upstream = Upstream(dependants(self._listed), open_ended=False)
            self._wire(machinery, total=len(self._listed), upstream=upstream)
            self._feeder.feed_list(self._listed)
            self._listed = None
            return None
        self._wire(machinery, total=None, upstream=Upstream({}, open_ended=True))
        intake = LazyIntake(Intake(self._options, self._agent_problems))
        if isinstance(self._source, AsyncIterable):
            return asyncio.create_task(self._feeder.feed_async(self._source, intake))
        self._feeder.feed_source(self._source, intake)
        return None

    def _wire(self, machinery: Machinery, *, total: int | None, upstream: Upstream, open_ended: bool = False) -> None:
        options = self._options
        self._machinery = machinery
        workers = options.workers_for(total)
        policy = SchedulePolicy(
            max_workers=workers,
            handle_errors=options.handle_errors,
            grace=options.grace,
            max_abandoned=options.max_abandoned,
            run_timeout=options.run_timeout,
            breaker=options.breaker,
            count_waiting=options.count_waiting,
        )
        started = machinery.clock.monotonic()
        self.run = Run(
            engine=machinery.engine,
            schedule=Schedule(policy, started, random.Random()),  # noqa: S311 - spreads retries
            clock=machinery.clock,
            outlet=self.outlet,
            broadcast=self._broadcast,
            upstream=upstream,
            hooks=RunHooks(self._settled, self._stop_feeding, self._finished),
        )
        run_limit = None if options.run_timeout is None else started + options.run_timeout
        services = self._services(run_limit)
        self.run.backend = LocalBackend(
            spawn=machinery.threads.run,
            make_attempt=lambda order, listener: Attempt(order, services, listener),
            listener=self.run,
            loop=machinery.engine.loop,
        )
        look_ahead = 2 * workers
        self._feeder = Feeder(self.run, self._prepare, self._is_prepared, look_ahead, open_ended=open_ended)
        self._lag = LagWatch(machinery.engine, self.run.notices.warn)
        self._started = machinery.clock.monotonic()
        self._open()
        self._broadcast.emit(RunStarted, total=total, max_workers=workers)

    def _services(self, run_limit: float | None) -> RunServices:
        options, machinery = self._options, self._machinery
        limits = CallLimits(options.rate_limits, options.adaptive, options.hedge_after)
        root = Path(options.directory) if options.directory is not None else default_directory()
        return RunServices(
            run_id=self.run_id,
            directory=root / self.run_id,
            context=contextvars.copy_context(),
            frameworks=self._frameworks,
            resources=self._resources.opened,
            questions=Questions(None if options.human_input == "refuse" else options.human_input),
            claims=Claims(),
            redactor=self.redactor,
            threads=machinery.threads,
            clock=machinery.clock,
            task_error=task_error,
            emit=self._broadcast.emit,
            observed=self._broadcast.observed,
            console=self._console.sink,
            count_waiting=options.count_waiting,
            run_limit=run_limit,
            open_gate=lambda index, **parts: GateOnDemand(
                machinery.gate,
                retry=options.model_retry_policy,
                redactor=self.redactor,
                spending=None if self._spending is None else self._spending.of(index),
                limits=limits,
                waited_for=self._metrics.count_wait,
                **parts,
            ),
        )

    # ---- while it runs

    def _open(self) -> None:
        self._console.open()
        atexit.register(self.exit)
        outer = CURRENT.get()
        if outer is not None:  # a run inside a task ends with that task
            stop = partial(self.run.stop, "cancelled", stop_running=True)
            self._hooks.enter_context(outer.signal.on_stop(stop))
        self._machinery.engine.post(self._lag.begin)

    def _stop_feeding(self) -> None:
        self._feeder.stop()

    def _settled(self, result: ParallelTaskResult) -> None:
        self._metrics.count(result)
        if self._spending is not None:
            self._spending.forget(result.index)
        if not self.outlet.streamed:
            self._feeder.handed_out()
        if self._submitted is not None:
            self._submitted.settled(result)
        if result.console and self._options.console == "grouped":
            self._broadcast.call(lambda: self._console.show_block(result.name, result.console))
        if not result.ok and self._options.handle_errors == "ignore":
            _log.warning("run %s: task %r %s: %s", self.run_id, result.name, result.status, result.error)

    def _finished(self) -> None:
        """Everything is settled and nothing unwinds: close up on a thread that may block."""
        self._lag.end()
        self._feeder.stop()
        wall = self._machinery.clock.monotonic() - self._started
        self.metrics = self._metrics.to_dict(
            wall=wall, peak=self.run.metrics["peak"], abandoned=self.run.metrics["abandoned"], lag_max=self._lag.worst
        )
        self._machinery.threads.run(self._close)

    def _close(self) -> None:
        try:
            self._resources.close()
            self._broadcast.close(_OBSERVERS_TIME)
            self._console.close()
            self._hooks.close()
        finally:
            if self._submitted is not None:
                self._submitted.finished()
            self.outlet.finish()
            self.leave()

    def take_result(self) -> ParallelTaskResult | None:
        """The next result if there is one, masked; called by whoever reads, off the engine loop."""
        result = self.outlet.take()
        if result is None:
            return None
        if self._streamed:
            self._feeder.handed_out()
        return self.presented(result)

    def presented(self, result: ParallelTaskResult) -> ParallelTaskResult:
        """The result fit to be shown: masked."""
        return self.redactor.result(result)

    def take_results(self) -> list[ParallelTaskResult]:
        """All results that are there."""
        return list(iter(self.take_result, None))

    @property
    def is_async(self) -> bool:
        """Whether the tasks come from an async source."""
        return isinstance(self._source, AsyncIterable)

    def stop(self, reason: str, *, stop_running: bool) -> None:
        """Start nothing more and, if wanted, stop what runs."""
        self._feeder.stop()
        self.run.stop(reason, stop_running=stop_running)

    def exit(self) -> None:
        """The interpreter ends: stop everything, wait for `grace` and a little."""
        if os.getpid() != self._machinery.engine.pid:
            return  # a forked child has the hook and not the run
        self.stop("cancelled", stop_running=True)
        self.outlet.wait_finished(self._options.grace + 0.8)

    def settle_soon(self) -> None:
        """Give the engine a moment to publish what a stop decided."""
        with suppress(TimeoutError):
            self.run.on_loop(lambda: None, timeout=_SETTLING_TIME)

    def leave(self) -> None:
        """Wait for nothing any more, at the interpreter's exit either."""
        atexit.unregister(self.exit)

    # ---- the end

    @property
    def source_error(self) -> BaseException | None:
        """What the source of tasks, or a resource, raised."""
        return self._feeder.error or self.run.internal_error

    def results(self, collected: Sequence[ParallelTaskResult]) -> RunResults:
        """All results together, with what became known after they were published."""
        return RunResults(
            [self._amended(result) for result in collected],
            run_id=self.run_id,
            stop_reason=self.run.stop_reason,
            metrics=self.metrics,
            ignore_failures=self._options.handle_errors == "ignore",
        )

    def _amended(self, result: ParallelTaskResult) -> ParallelTaskResult:
        how = self.run.amended(result)
        if how is None:
            return result
        *earlier, last = result.attempt_log
        return replace(result, ended=how, attempt_log=(*earlier, replace(last, ended=how)))

"""A run in worker processes, joined to the caller's side: what may cross, and what attempts ask of the run."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ag2_parallel import events
from ag2_parallel.backends import wire
from ag2_parallel.backends.crossing import dumped
from ag2_parallel.backends.plan import RunPlan
from ag2_parallel.backends.process_run import ProcessRun, RunSide
from ag2_parallel.backends.revived import revived, told_of
from ag2_parallel.errors import TaskStopped
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.ports import AttemptScope, Draft
from ag2_parallel.tasks import HumanInputRequest
from ag2_parallel.workers.coroutines import Coroutines
from ag2_parallel.workers.stop_signal import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from ag2_parallel.backends.flights import Flight
    from ag2_parallel.gate.budget import Spending
    from ag2_parallel.machinery import Machinery
    from ag2_parallel.options import Options
    from ag2_parallel.ports import BackendListener
    from ag2_parallel.results import TaskError
    from ag2_parallel.workers.run_services import RunServices


class ProcessSide:
    """Opens a run's backend."""

    def __init__(
        self,
        options: Options,
        machinery: Machinery,
        services: RunServices,
        spending: Spending | None,
        waited_for: Callable[[str, float], None],
        broke: Callable[[BaseException], None],
    ) -> None:
        """`services` are those that attempts would have in this process; `broke` ends the run with an error."""
        self._broke = broke
        self._options = options
        self._machinery = machinery
        self._services = services
        self._limits = CallLimits(options.rate_limits, options.adaptive, options.hedge_after)
        self._spending = spending
        self._waited_for = waited_for

    def opened(self, slots: int, listener: BackendListener) -> ProcessRun:
        """The backend of a run of at most `slots` tasks at once."""
        policy, machinery = self._options.processes, self._machinery
        assert policy is not None
        pool = machinery.processes(policy)
        run_id = self._services.run_id
        side = RunSide(
            draft=lambda task: Draft(console=self._services.console(task)),
            tape=self._services.tape,
            receipts=self._services.receipts,
            happened=self._happened,
            waited_for=self._waited_for,
            learnt=lambda secrets: self._services.redactor.learn({"secret": secrets}),
            mask=self._services.redactor.text,
            broke=self._break,
            answer=self._answer,
            account=None if self._spending is None else _RunAccount(self._spending),
            spawn=machinery.threads.run,
            clock=machinery.clock,
        )
        run = ProcessRun(run_id, pool, listener, side, limits=self._limits, payload=dumped(self._plan()))
        machinery.engine.post(lambda: pool.enter(run, slots))
        return run

    def _plan(self) -> RunPlan:
        options, services = self._options, self._services
        limit = services.run_limit
        return RunPlan(
            run_id=services.run_id,
            directory=str(services.directory.parent),
            llm_config=options.llm_config,
            model_retry=options.model_retry_policy,
            limits=replace(self._limits, run=services.run_id),
            budget=options.budget,
            redact=options.redact,
            secrets=services.redactor.learnt,
            captures=options.console != "quiet",
            resources=options.resources,
            count_waiting=options.count_waiting,
            run_remaining=None if limit is None else limit - self._machinery.clock.monotonic(),
            asks=options.human_input != "refuse",
            observed=frozenset(kind.__name__ for kind in _kinds() if self._services.observed(kind)),
            log_level=logging.getLogger("ag2_parallel").getEffectiveLevel(),
        )

    def _happened(self, name: str, fields: dict[str, Any]) -> None:
        kind = getattr(events, name, None)
        if isinstance(kind, type) and issubclass(kind, events.Event):
            self._services.emit(kind, **fields)

    def _break(self, error: TaskError) -> None:
        self._broke(revived(told_of(error)))

    def _answer(self, question: wire.Asked, flight: Flight) -> wire.Answered:
        request = HumanInputRequest(question.task, question.agent, question.prompt, question.password)
        asker = cast("AttemptScope", _Asker(flight, self._machinery))
        run, number = self._services.run_id, question.number
        try:
            return wire.Answered(run, number, self._services.questions.ask(request, asker, lambda _end: nullcontext()))
        except BaseException as error:
            return wire.Answered(run, number, None, told_of(task_error(error, self._services.redactor, None)))


def _kinds() -> list[type[events.Event]]:
    return [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)]


class _Asker:
    """A task in another process whose question is asked here: as much of `ports.AttemptScope` as that takes."""

    def __init__(self, flight: Flight, machinery: Machinery) -> None:
        self._flight = flight
        self._machinery = machinery

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()  # the attempt itself says that it waits

    def check(self) -> None:
        if self._flight.stopped:
            raise TaskStopped

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        coroutines = Coroutines(self._machinery.threads, StopSignal(), self._flight.name)
        try:
            return coroutines.run(coroutine)
        finally:
            coroutines.close()


class _RunAccount:
    """A run's budget, for its attempts in other processes."""

    def __init__(self, spending: Spending) -> None:
        self._spending = spending

    def charged(self, index: int, tokens: int, cost: float) -> None:
        self._spending.of(index).add(tokens, cost)

    def used_up(self, index: int) -> tuple[int | None, str] | None:
        why = self._spending.run_reached()
        if why is not None:
            return None, why
        refusal = self._spending.of(index).refusal(None, priced=lambda: True)
        return None if refusal is None else (index, refusal.message)

    def refused(self) -> None:
        why = self._spending.run_reached()
        if why is not None:
            self._spending.on_refused(why)

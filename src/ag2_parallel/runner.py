"""The public face: `ParallelAgentRunner` and `run_agents_parallel`."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.options import Options, RunnerOptions
from ag2_parallel.runs import Runs

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping

    from ag2_parallel.assembly import ActiveRun
    from ag2_parallel.core.resuming import Changed, Rerun, Uncertain
    from ag2_parallel.events import Event
    from ag2_parallel.forecast import Forecast
    from ag2_parallel.policies import HandleErrors, Journal
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.run_handle import RunHandle
    from ag2_parallel.run_results import RunResults
    from ag2_parallel.streaming import ResultStream
    from ag2_parallel.tasks import ParallelTask, RefusedTask, Template

Tasks: TypeAlias = "Iterable[ParallelTask | RefusedTask | Mapping[str, Any]] | str"
AsyncTasks: TypeAlias = "Tasks | AsyncIterable[ParallelTask | Mapping[str, Any]]"


class ParallelAgentRunner:
    """Runs AG2 agents and agent teams at once.

    Every task ends in exactly one result. Agents are copied or made anew for each attempt, time
    limits hold whatever the agents do, and a failure is a value that harms no other task.

    A runner is safe to use from several threads; each run is independent. Inside a `with` block it
    keeps its engine and connections from run to run.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        timeout: float | None = None,
        handle_errors: HandleErrors = "collect",
        **options: Unpack[RunnerOptions],
    ) -> None:
        """Check the options; nothing starts.

        Args:
            max_workers: Tasks at once, 1 to 10,000; None: `min(tasks, min(32, processors + 4))`.
            timeout: Seconds for each task from its start; None: no limit.
            handle_errors: "collect", "fail_fast" or "ignore".
            **options: See `ag2_parallel.options.Options`.

        Raises:
            ConfigurationError: For an unknown option or a value out of range, all at once.
        """
        self._options = Options.of(
            {
                **options,
                "max_workers": _either(max_workers, options),
                "timeout": timeout,
                "handle_errors": handle_errors,
            }
        )
        self._runs = Runs(self._options)

    # ---- running

    def run(
        self, tasks: Tasks, *, run_id: str | None = None, known: Mapping[str, ParallelTaskResult] | None = None
    ) -> RunResults:
        """Run the tasks and wait for all of them. Works inside a running event loop too, such as a notebook's.

        Args:
            tasks: A list of `ParallelTask` or dicts, checked whole before anything starts; or any other
                iterable, read as workers become free; or "module:attribute", which names one of these or a function
                that returns one.
            run_id: A name for the run; None: made from the time. Where the journal has that run, it goes on.
            known: Results by name, such as those of `forecast`: their tasks do not run, and their usage counts in `budget`.

        Raises:
            ConfigurationError: With every problem of every task; nothing was started.
            RunFailedError: With `handle_errors="fail_fast"` when a task did not succeed, or when the
                source of tasks raised; it has `.results`.
            RunInterrupted: After Ctrl-C; it has `.results`.
            JournalError: The journal cannot be used, or another process holds the run; nothing was started.
        """
        return self._runs.waited_for(self._runs.accepted(tasks, run_id, streamed=False, known=known))

    def forecast(self, tasks: Tasks, sample: int = 5, *, seed: int = 0, run_id: str | None = None) -> Forecast:
        """Run a sample of the tasks and wait for it; say what the whole run takes: time, tokens, cost, useful workers.

        Args:
            tasks: As in `run`; no iterator, since tasks are read again by the run.
            sample: How many tasks are run, spread over the input.
            seed: Which tasks these are, and what chance does in the simulation: the same for the same seed.
            run_id: As in `run`; with a journal the sample is the first part of that run.

        Returns:
            The forecast. `run(tasks, known=forecast.results)` does not run the sample again.

        Raises:
            ConfigurationError: As in `run`; or no task of the sample ran. The other errors are those of `run`.
        """
        return self._runs.forecast(tasks, sample, seed, run_id)

    async def arun(self, tasks: AsyncTasks, *, run_id: str | None = None) -> RunResults:
        """Like `run`, for async code: the loop stays free. Cancelling stops the run and waits for its clean-up."""
        from ag2_parallel.streaming import drained

        active = self._runs.accepted(tasks, run_id, streamed=True)
        collected = [result async for result in drained(active, partial(active.open, self._runs.keeper.lease))]
        return self._runs.checked(active, active.results(collected))

    a_run = arun

    def stream(self, tasks: Tasks, *, run_id: str | None = None) -> Iterator[ParallelTaskResult]:
        """Yield each result as it is there. Leaving the loop stops the run; tasks are checked at the call.

        With `handle_errors="fail_fast"` it yields what there is and then raises `RunFailedError`. With
        `"ignore"` only the succeeded are yielded.
        """
        active = self._runs.accepted(tasks, run_id, streamed=True)
        if active.is_async:
            raise ConfigurationError("tasks: an async iterable needs `runner.astream(tasks)`")
        from ag2_parallel.streaming import ResultStream

        seen: list[ParallelTaskResult] = []
        stream = ResultStream(
            active, partial(active.open, self._runs.keeper.lease), lambda: self._runs.end_of_stream(active, seen)
        )
        return self._shown(stream, seen)

    def _shown(self, stream: ResultStream, seen: list[ParallelTaskResult]) -> Iterator[ParallelTaskResult]:
        with stream:
            for result in stream:
                if self._runs.keeps(result, seen):
                    yield result

    def astream(self, tasks: AsyncTasks, *, run_id: str | None = None) -> AsyncGenerator[ParallelTaskResult, None]:
        """Like `stream`, for async code."""
        return self._ashown(self._runs.accepted(tasks, run_id, streamed=True))

    async def _ashown(self, active: ActiveRun) -> AsyncGenerator[ParallelTaskResult, None]:
        from ag2_parallel.streaming import drained

        seen: list[ParallelTaskResult] = []
        async with aclosing(drained(active, partial(active.open, self._runs.keeper.lease))) as results:
            async for result in results:
                if self._runs.keeps(result, seen):
                    yield result
        self._runs.end_of_stream(active, seen)

    def map(
        self,
        agent: Any,
        rows: Any,
        prompt: str | Template,
        name: str | None = None,
        *,
        run_id: str | None = None,
        **task_fields: Any,
    ) -> RunResults:
        """Run one task for each row of a data set: `run(tasks_from_rows(agent, rows, prompt, name, ...))`.

        Rows are read as workers become free. The columns that the templates need are compared with the first row
        before anything starts.

        Args:
            agent: As in `tasks_from_rows`: a config dict, an agent or team used as a template, a factory, or None.
            rows: Mappings, a frame, or the path of a data file or folder.
            prompt: A Jinja2 template over the columns: `"Summarise {{ text }}"`.
            name: Likewise for the task's name; None: `row-000001` and so on.
            run_id: As in `run`.
            **task_fields: The other fields of `ParallelTask`, the same for every row.

        Raises:
            ConfigurationError: For a template that does not parse or needs a column that is not there.
            RunFailedError: As `run` does; also if the data set breaks off.
        """
        from ag2_parallel.data.mapped_tasks import tasks_from_rows

        return self.run(tasks_from_rows(agent, rows, prompt, name, **task_fields), run_id=run_id)

    def deliver(
        self,
        tasks: Tasks,
        take: Callable[[ParallelTaskResult], object],
        *,
        run_id: str | None = None,
        rerun: Rerun = "not_succeeded",
        changed: Changed = "rerun",
        uncertain: Uncertain = "fail",
        known: Mapping[str, ParallelTaskResult] | None = None,
    ) -> RunResults:
        """Like `run`, but hand each result to `take` as it is there, and keep none: for runs larger than memory.

        Args:
            tasks: As in `run`.
            take: Called with every result, failed and ignored ones too, for one at a time, on a thread of its own.
                While it is busy, no more tasks are read from a source. If it raises, the run is stopped.
            run_id: As in `run`. The rest is as in `resume`, where the journal has that run.
            rerun: Which tasks with a result run again.
            changed: What becomes of a task that would do something else than before.
            uncertain: What becomes of an effect that may have happened.
            known: As in `run`.

        Returns:
            `RunResults` without results: `run_id`, `stop_reason` and `metrics`.

        Raises:
            ConfigurationError: As in `run`.
            RunFailedError: As in `run`; its `.results` are those that failed.
            RunInterrupted: After Ctrl-C, in the stages of `run`.
        """
        from ag2_parallel.core.resuming import ResumePolicy
        from ag2_parallel.streaming import deliver

        policy = ResumePolicy(rerun, changed, uncertain)
        active = self._runs.accepted(tasks, run_id, streamed=True, policy=policy, known=known)
        if active.is_async:
            raise ConfigurationError("tasks: `deliver` takes no async iterable")
        failed: list[ParallelTaskResult] = []

        def taken(result: ParallelTaskResult) -> None:
            if not result.ok and self._options.handle_errors == "fail_fast":
                failed.append(result)
            take(result)

        return self._runs.driven(active, lambda: deliver(active, taken), lambda: failed)

    def start(self, tasks: Tasks = (), *, run_id: str | None = None) -> RunHandle:
        """Start a run and return at once with a handle on it: more tasks, pause, workers, cancel, status, results.

        The run takes tasks until the handle's `results()` is called, or its `with` block is left.
        """
        from ag2_parallel.run_handle import RunHandle

        active = self._runs.accepted(tasks, run_id, streamed=False)
        if active.is_async:
            raise ConfigurationError("tasks: `start` takes no async iterable; submit its tasks to the handle")
        return RunHandle(active, active.open(self._runs.keeper.lease), self._runs.checked)

    def resume(
        self,
        journal: Journal | str | os.PathLike[str],
        tasks: Tasks | None = None,
        run_id: str | None = None,
        *,
        rerun: Rerun = "not_succeeded",
        changed: Changed = "rerun",
        uncertain: Uncertain = "fail",
    ) -> RunResults:
        """Go on with a run that a journal has: results that stand are not paid for again.

        `run(tasks, run_id=...)` with `journal=` does the same with the defaults.

        Args:
            journal: The file, or a `Journal`. Of a file as much is kept as the runner's own `Journal` says, else as before.
            tasks: The run's tasks; None where it was started with "module:attribute", which finds them again.
            run_id: The run; None: the one that was begun last.
            rerun: Which tasks with a result run again: all that did not succeed, those that "failed" by themselves or
                ran into a limit, those that were "interrupted" before their end, or "none". Tasks without a result run.
            changed: What becomes of a task that would do something else than before, by its prompt, configuration,
                context, factory or type: it runs again ("rerun"), keeps its result ("keep"), or is an "error".
            uncertain: What a tool with `@once` does whose effect may have happened: "fail", "repeat" or "skip".

        Raises:
            JournalError: The journal cannot be used, or another process holds the run.
            ConfigurationError: The run is not there, its tasks cannot be found again, or as `run`.
            RunFailedError: As `run`.
            RunInterrupted: As `run`.
        """
        from ag2_parallel.core.resuming import ResumePolicy
        from ag2_parallel.run_record import as_before, resumable

        policy = ResumePolicy(rerun, changed, uncertain)
        header = resumable(journal, run_id)
        options = replace(self._options, journal=as_before(journal, self._options.journal, header))
        run_id, found_by = header.run_id, header.source or {}
        if tasks is None and "attribute" not in found_by:
            raise ConfigurationError(
                f"run {run_id!r}: its tasks cannot be found again from the journal; pass them: runner.resume(journal, tasks)"
            )
        given = tasks if tasks is not None else found_by["attribute"]
        return self._runs.waited_for(self._runs.accepted(given, run_id, streamed=False, options=options, policy=policy))

    def events(self, tasks: Tasks, *, run_id: str | None = None) -> Iterator[Event]:
        """Run the tasks and yield what happens, all tasks merged into one stream that ends with `RunFinished`.

        Leaving the loop stops the run. Raises at the end what `run` would raise.
        """
        from ag2_parallel.event_stream import event_stream

        tap, active = self._runs.tapped(tasks, run_id)
        if active.is_async:
            raise ConfigurationError("tasks: an async iterable needs `runner.aevents(tasks)`")
        return event_stream(active, tap, partial(active.open, self._runs.keeper.lease), self._runs.checked)

    def aevents(self, tasks: AsyncTasks, *, run_id: str | None = None) -> AsyncGenerator[Event, None]:
        """Like `events`, for async code."""
        from ag2_parallel.event_stream import async_event_stream

        tap, active = self._runs.tapped(tasks, run_id)
        return async_event_stream(active, tap, partial(active.open, self._runs.keeper.lease), self._runs.checked)

    # ---- keeping the machinery

    def __enter__(self) -> Self:
        """Keep engine and connections across runs."""
        self._runs.keeper.keep()
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self._runs.keeper.release()

    def __repr__(self) -> str:
        """The main options."""
        o = self._options
        return (
            f"ParallelAgentRunner(max_workers={o.max_workers}, timeout={o.timeout}, handle_errors={o.handle_errors!r})"
        )

    def _repr_html_(self) -> str:
        from ag2_parallel.reporting.notebook_html import options_html

        default = Options()
        names = [each.name for each in fields(Options)]
        given = {name: value for name in names if (value := getattr(self._options, name)) != getattr(default, name)}
        return options_html(given)


def _either(max_workers: int | None, options: RunnerOptions) -> int | None:
    return max_workers if max_workers is not None else options.get("max_concurrency")


def run_agents_parallel(
    tasks: Tasks,
    max_workers: int | None = None,
    timeout: float | None = None,
    handle_errors: HandleErrors = "collect",
    **options: Unpack[RunnerOptions],
) -> RunResults:
    """Run the tasks at once and wait for all of them: `ParallelAgentRunner(...).run(tasks)`."""
    return ParallelAgentRunner(max_workers, timeout, handle_errors, **options).run(tasks)

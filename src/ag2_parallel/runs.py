"""How a runner makes its runs, waits for them, and raises what they end with."""

from __future__ import annotations

import threading
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import ConfigurationError, RunFailedError, RunInterrupted
from ag2_parallel.run_results import RunResults, failure_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ag2_parallel.assembly import ActiveRun
    from ag2_parallel.core.event_tap import EventTap
    from ag2_parallel.core.resuming import ResumePolicy
    from ag2_parallel.forecast import Forecast
    from ag2_parallel.machinery import MachineryKeeper
    from ag2_parallel.options import Options
    from ag2_parallel.ports import Observer
    from ag2_parallel.results import ParallelTaskResult


class Runs:
    """The runs of one runner; importing it, and making one, stays cheap."""

    def __init__(self, options: Options) -> None:
        """Nothing starts."""
        self._options = options
        self._lock = threading.Lock()
        self._made_keeper: MachineryKeeper | None = None

    @property
    def keeper(self) -> MachineryKeeper:
        """Keeps the machinery from run to run where that is wanted."""
        from ag2_parallel.machinery import MachineryKeeper  # with the first run: importing the package stays cheap

        with self._lock:
            if self._made_keeper is None:
                self._made_keeper = MachineryKeeper()
            return self._made_keeper

    def tapped(self, tasks: Any, run_id: str | None) -> tuple[EventTap, ActiveRun]:
        """A run with a tap on its events."""
        from ag2_parallel.core.event_tap import EventTap

        tap = EventTap()
        return tap, self.accepted(tasks, run_id, streamed=False, observers=[tap])

    def accepted(
        self,
        tasks: Any,
        run_id: str | None,
        *,
        streamed: bool,
        observers: Sequence[Observer] = (),
        options: Options | None = None,
        policy: ResumePolicy | None = None,
        known: Mapping[str, ParallelTaskResult] | None = None,
    ) -> ActiveRun:
        """A run that has its tasks, and has not started.

        Raises:
            ConfigurationError: With every problem of every task of a list.
        """
        from ag2_parallel.assembly import ActiveRun
        from ag2_parallel.core.run_names import check_run_id

        check_run_id(run_id)
        options = options or self._options
        active = ActiveRun(options, streamed=streamed, run_id=run_id, observers=observers, policy=policy, known=known)
        active.take(tasks)
        return active

    def forecast(self, tasks: Any, size: int, seed: int, run_id: str | None) -> Forecast:
        """Run a sample of the tasks, and say what the whole run takes."""
        from ag2_parallel.core.sampling import sample_of
        from ag2_parallel.sampled_run import forecast_of

        given: Any = size
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise ConfigurationError(f"sample: {size!r} is not a whole number from 1")
        import ag2_parallel.gate.gate  # noqa: F401 - else its loading, once a process, counts as the time of the first tasks

        sample = sample_of(self.accepted(tasks, run_id, streamed=False).tasks, size, seed)
        results = self.waited_for(self.accepted(sample.tasks, run_id, streamed=False))
        return forecast_of(results, sample, self._options, seed)

    def keeps(self, result: ParallelTaskResult, seen: list[ParallelTaskResult]) -> bool:
        """Whether a streamed result is shown; remembers those that the error at the end will carry."""
        if self._options.handle_errors == "fail_fast":
            seen.append(result)
        return result.ok or self._options.handle_errors != "ignore"

    def end_of_stream(self, active: ActiveRun, seen: list[ParallelTaskResult]) -> None:
        """Raise what a run ends with whose results were streamed."""
        self.checked(active, active.results(seen))

    def checked(self, active: ActiveRun, results: RunResults) -> RunResults:
        """Raise what a run that failed as a whole raises."""
        error = active.source_error
        if error is not None:
            told = active.redactor.text(str(error))
            message = f"the run failed: {type(error).__name__}: {told}"
            # A cause is printed as it is, with its notes and its own causes, so one that holds a secret is not shown.
            shown = "".join(format_exception(error))
            raise RunFailedError(message, results) from (error if active.redactor.text(shown) == shown else None)
        if results.stop_reason == "fail_fast":
            bad = [result for result in results.values() if not result.ok]
            raise RunFailedError(failure_message(bad, len(results)), results)
        return results

    def waited_for(self, active: ActiveRun) -> RunResults:
        """The results of a run, once it is over."""
        from ag2_parallel.streaming import wait_for_end

        if active.is_async:
            raise ConfigurationError(
                "tasks: an async iterable needs `await runner.arun(tasks)` or `runner.astream(tasks)`"
            )
        return self.driven(active, lambda: wait_for_end(active), active.take_results)

    def driven(
        self, active: ActiveRun, wait: Callable[[], int], collected: Callable[[], Sequence[ParallelTaskResult]]
    ) -> RunResults:
        """Start a run, `wait` for its end and how often it was interrupted, and give the results `collected`."""
        lease = active.open(self.keeper.lease)
        try:
            active.start(lease.machinery)
            interrupts = wait()
            results = active.results(collected())
        except KeyboardInterrupt:  # in the moment when nobody waited for it yet, or any more
            if not active.is_started:
                raise
            from ag2_parallel.streaming import wait_for_end

            interrupts = wait_for_end(active, 1)
            results = active.results(collected())
        finally:
            lease.end()
        if interrupts:
            how = active.how_to_resume
            later = f"; go on with: {how}" if how is not None else ""
            raise RunInterrupted(f"interrupted; {results!r}{later}", results, how)
        return self.checked(active, results)

"""What whoever waits for a run may ask of it, off the engine loop: results, the reason of its end, how to go on."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ag2_parallel.core.kept import Kept
from ag2_parallel.core.outcome import amended
from ag2_parallel.run_results import RunResults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ag2_parallel.core.feeder import Feeder
    from ag2_parallel.core.outlet import Outlet
    from ag2_parallel.core.run import Run
    from ag2_parallel.core.task_source import TaskSource
    from ag2_parallel.options import Options
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.run_record import RunRecord

_SETTLING_TIME = 0.5

_STAND_BACK = 0.001
"""Seconds that a reader of results that stand leaves the interpreter to the search for tasks that have to run."""


class ReadableRun:
    """The reader's side of a run; `assembly.ActiveRun` has the rest.

    Attributes:
        run_id: The run's name.
        run: What drives it, once it has started.
        outlet: Where its results come out.
        redactor: Masks what is shown.
        metrics: Its numbers, once it has ended.
    """

    run_id: str
    run: Run
    outlet: Outlet
    redactor: Redactor
    metrics: dict[str, Any]
    _options: Options
    _tasks: TaskSource
    _feeder: Feeder
    _record: RunRecord

    def take_result(self) -> ParallelTaskResult | None:
        """The next result if there is one, masked; called by whoever reads, off the engine loop."""
        result = self.outlet.take()
        if result is None:
            return None
        if isinstance(result, Kept):
            if self._feeder.passes_by:
                time.sleep(_STAND_BACK)
            return result.load()
        if self.outlet.streamed:
            self._feeder.handed_out()
        return self.presented(result)

    def presented(self, result: ParallelTaskResult) -> ParallelTaskResult:
        """The result fit to be shown: masked."""
        return self.redactor.result(result)

    def take_results(self) -> list[ParallelTaskResult]:
        """All results that are there."""
        return list(iter(self.take_result, None))

    @property
    def how_to_resume(self) -> str | None:
        """What a user types to go on with the run in a later life; None without a journal."""
        return self._record.how_to_resume(self.run_id, self._tasks.found_by)

    @property
    def is_async(self) -> bool:
        """Whether the tasks come from an async source."""
        return self._tasks.is_async

    def settle_soon(self) -> None:
        """Give the engine a moment to publish what a stop decided."""
        with suppress(TimeoutError):
            self.run.on_loop(self.run.publish_now, timeout=_SETTLING_TIME)

    @property
    def source_error(self) -> BaseException | None:
        """What the source of tasks, or a resource, raised."""
        return self._feeder.error or self.run.internal_error or self.run.journal_error

    def results(self, collected: Sequence[ParallelTaskResult]) -> RunResults:
        """All results together, with what became known after they were published."""
        return RunResults(
            [amended(result, self.run.how_it_ended(result)) for result in collected],
            run_id=self.run_id,
            stop_reason=self.run.stop_reason,
            metrics=self.metrics,
            ignore_failures=self._options.handle_errors == "ignore",
        )

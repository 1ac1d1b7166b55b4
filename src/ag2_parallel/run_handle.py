"""A run that goes on while the caller looks after it: more tasks, pause, workers, cancel, status."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.policies import MAX_WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType

    from ag2_parallel.assembly import ActiveRun
    from ag2_parallel.machinery import Lease
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.run_results import RunResults


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Where a run stands.

    Attributes:
        added: Tasks it has taken so far.
        waiting: Tasks that have not started, or wait for another attempt.
        running: Tasks that run now.
        counts: Settled tasks by status.
        abandoned: Stuck threads that were given up.
        max_workers: Tasks that may run at once.
        paused: Whether nothing new starts.
        finished: Whether it has ended.
        stop_reason: Why it ended early, if it did.
    """

    added: int
    waiting: int
    running: int
    counts: dict[str, int]
    abandoned: int
    max_workers: int
    paused: bool
    finished: bool
    stop_reason: str | None

    @property
    def settled(self) -> int:
        """Tasks that have their result."""
        return Counter(self.counts).total()


class RunHandle:
    """A run that was started with `ParallelAgentRunner.start`. Safe from any thread.

    In a `with` block it is waited for at the end, and cancelled if the block raises.
    """

    def __init__(self, active: ActiveRun, lease: Lease, checked: Callable[[ActiveRun, RunResults], RunResults]) -> None:
        """The run starts here."""
        self._active = active
        self._lease = lease
        self._checked = checked
        self._paused = False
        self._submitted = active.start_open(lease.machinery)
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._let_go = False
        self._results: RunResults | None = None

    @property
    def run_id(self) -> str:
        """The run's name."""
        return self._active.run_id

    def submit(self, task: Any) -> Future[ParallelTaskResult]:
        """Add a task to the run; it may depend on tasks added before it.

        Args:
            task: A `ParallelTask` or a dict.

        Returns:
            A future of the task's result. It never raises what the task raised: that is in the result.

        Raises:
            ConfigurationError: If the task cannot run; the run goes on without it.
            Ag2ParallelError: If the results were asked for, or the run is being stopped or has ended.
        """
        return self._submitted.submit(task)

    def pause(self) -> None:
        """Start nothing new; running tasks and all time limits go on."""
        self._paused = True
        self._active.run.pause()

    def resume(self) -> None:
        """Start things again."""
        self._paused = False
        self._active.run.resume()

    def set_max_workers(self, count: int) -> None:
        """Let `count` tasks run at once from now on; what runs beyond that goes on to its end.

        Raises:
            ConfigurationError: If `count` is not a whole number from 1 to 10,000.
        """
        given: Any = count
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MAX_WORKERS:
            raise ConfigurationError(f"max_workers: {count!r} is not a whole number from 1 to {MAX_WORKERS}")
        self._active.set_max_workers(count)

    def cancel(self) -> None:
        """Stop the run: running tasks are cancelled, waiting ones skipped. Does not wait; see `results`."""
        self._active.stop("cancelled", stop_running=True)

    def status(self) -> RunStatus:
        """Where the run stands now."""
        with self._looking:  # the loop stays as long as somebody asks it
            if not self._let_go and not self._active.outlet.finished:
                return self._active.run.on_loop(self._status)
        return self._status()

    def _status(self) -> RunStatus:
        run = self._active.run
        return RunStatus(
            **run.numbers(),
            counts=dict(run.counts),
            paused=self._paused,
            finished=self._active.outlet.finished,
            stop_reason=run.stop_reason,
        )

    def results(self) -> RunResults:
        """Take no more tasks, wait for those there are, and return what `run` would; a second call returns the same.

        Raises:
            RunFailedError: As `run` does.
        """
        self._submitted.close()
        self._active.outlet.wait_finished()
        with self._lock:
            if self._results is None:
                self._results = self._active.results(self._active.take_results())
        self._leave_the_loop()
        self._lease.end()
        return self._checked(self._active, self._results)

    def _leave_the_loop(self) -> None:
        with self._looking:
            self._let_go = True

    def __repr__(self) -> str:
        """The run and where it stands."""
        return f"RunHandle({self.run_id!r}, {self.status()!r})"

    def _repr_html_(self) -> str:
        from ag2_parallel.reporting.notebook_html import handle_html

        status = self.status()
        told = {item.name.replace("_", " "): getattr(status, item.name) for item in fields(status)}
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in status.counts.items() if count)
        return handle_html(self.run_id, told | {"counts": counts or "none settled"})

    def __enter__(self) -> Self:
        """See the class."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the run, or cancel it if the block raised."""
        if error is None:
            self.results()
            return
        from ag2_parallel.streaming import end_run  # where it is used: importing the package stays cheap

        self.cancel()
        self._active.outlet.wait_finished()
        self._leave_the_loop()
        end_run(self._active, self._lease)

    def __del__(self) -> None:
        """A handle that was dropped cancels its run."""
        if hasattr(self, "_submitted") and self._results is None:
            from ag2_parallel.streaming import end_run_elsewhere

            end_run_elsewhere(self._active, self._lease)

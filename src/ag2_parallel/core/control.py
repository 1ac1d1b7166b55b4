"""What may be asked of a run, and told it, in one step and from any thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ag2_parallel.core.commands import Command
    from ag2_parallel.core.notices import Notices
    from ag2_parallel.core.schedule import Schedule
    from ag2_parallel.ports import Clock
    from ag2_parallel.results import TaskError


class RunControl:
    """Hands requests to the loop, where the schedule answers them; `Run` has the rest."""

    notices: Notices
    _schedule: Schedule
    _clock: Clock

    def _post(self, function: Callable[[], None]) -> None:
        """Run `function` on the loop, soon."""
        raise NotImplementedError

    def _do(self, todo: Iterable[Command]) -> None:
        """Carry out commands, on the loop."""
        raise NotImplementedError

    def _ask(self, request: Callable[[float], list[Command]]) -> None:
        self._post(lambda: self._do(request(self._clock.monotonic())))

    def stop(self, reason: str, *, stop_running: bool) -> None:
        """Start nothing more and, if wanted, stop what runs."""
        self._ask(lambda now: self._schedule.stop(reason, stop_running=stop_running, now=now))

    def exhaust(self, why: str, *, stop: bool) -> None:
        """The budget is used up: nothing new starts. The run is stopped if a task waits, or in any case."""

        def request(now: float) -> list[Command]:
            self.notices.why.setdefault("budget", why)
            schedule = self._schedule
            return schedule.stop("budget", stop_running=False, now=now) if stop else schedule.exhaust("budget", now)

        self._ask(request)

    def pause(self, by: str = "user") -> None:
        """Start nothing until whoever paused resumes; running tasks and the clocks go on."""
        self._ask(lambda now: self._schedule.pause(now, by))

    def resume(self, by: str = "user") -> None:
        """Start things again, unless somebody else paused too."""
        self._ask(lambda now: self._schedule.resume(now, by))

    def set_max_workers(self, count: int) -> None:
        """Let `count` tasks run at once from now on; what runs beyond that goes on."""
        self._ask(lambda now: self._schedule.set_max_workers(count, now))

    def numbers(self) -> dict[str, int]:
        """How many tasks and threads are where."""
        schedule = self._schedule
        return {
            "added": schedule.added,
            "waiting": schedule.added - schedule.settled - schedule.running,
            "running": schedule.running,
            "abandoned": schedule.abandoned,
            "max_workers": schedule.max_workers,
        }

    def attempt_cut_off(self, index: int, attempt: int, error: TaskError) -> None:
        """See `ports.BackendListener`."""
        self._ask(lambda now: self._schedule.cut_off(index, attempt, error, now))

    def attempt_alive(self, index: int, attempt: int) -> None:
        """See `ports.BackendListener`."""
        self._post(lambda: self._schedule.alive(index, attempt, self._clock.monotonic()))

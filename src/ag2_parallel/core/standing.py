"""Where a schedule stands: what is waiting, running and settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ag2_parallel.core.attempts import Attempts
    from ag2_parallel.core.backlog import Backlog
    from ag2_parallel.results import TaskStatus


class Standing:
    """What may be read of a schedule; `Schedule` has the rest."""

    _attempts: Attempts
    _backlog: Backlog
    _max_workers: int
    _finished: bool

    @property
    def added(self) -> int:
        """Tasks that came in."""
        return self._backlog.added

    @property
    def settled(self) -> int:
        """Tasks whose outcome is decided."""
        return self._backlog.settled

    @property
    def running(self) -> int:
        """Attempts that hold a slot."""
        return self._attempts.running

    @property
    def waiting_count(self) -> int:
        """Tasks neither running nor settled: blocked, ready, unwinding or in backoff."""
        return self._backlog.added - self._backlog.settled - self._attempts.running

    @property
    def abandoned(self) -> int:
        """Attempts that were given up and have not come back."""
        return self._attempts.abandoned

    @property
    def peak_running(self) -> int:
        """The most attempts that held a slot at once."""
        return self._attempts.peak

    @property
    def max_workers(self) -> int:
        """How many attempts may hold a slot now."""
        return self._max_workers

    @property
    def finished(self) -> bool:
        """Whether `Finish` was given."""
        return self._finished

    def status_of(self, index: int) -> TaskStatus | None:
        """A task's status, None until it is settled."""
        return self._backlog.status_of(index)

    def counts(self) -> dict[TaskStatus, int]:
        """How many tasks settled with each status."""
        return self._backlog.counts()

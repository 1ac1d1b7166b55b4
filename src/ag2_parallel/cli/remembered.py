"""What a dry run can say of a run's time: from what its journal remembers of tasks of the same names."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ag2_parallel.core.forecasting import Sampled, outlook
from ag2_parallel.forecast import duration
from ag2_parallel.reporting.words import many_tasks
from ag2_parallel.run_record import store_of

if TYPE_CHECKING:
    from ag2_parallel.options import Options


class Remembered:
    """Counts tasks, and those of them that were seen before."""

    def __init__(self, options: Options) -> None:
        """Read the journal, where there is one; it is not made.

        Raises:
            JournalError: It cannot be read.
        """
        self._options = options
        self._seconds: dict[str, float] = {}
        store = store_of(options.journal)
        if store is not None and Path(store.path).exists():
            self._seconds = {name: seconds for name, _, seconds in store.durations()}
        self._seen: list[float] = []
        self._count = 0

    def count(self, name: str) -> None:
        """One more task."""
        self._count += 1
        if (seconds := self._seconds.get(name)) is not None:
            self._seen.append(seconds)

    def forecast(self, workers: int) -> dict[str, Any] | None:
        """The time of the whole run as plain data; None where nothing is remembered."""
        if not self._seen:
            return None
        ahead = outlook([Sampled(seconds) for seconds in self._seen], self._count, workers, random.Random(0))  # noqa: S311 - no secret
        wall = {"low": ahead.wall.low, "expected": ahead.wall.expected, "high": ahead.wall.high}
        return {"remembered": len(self._seen), "wall": wall, "knee": ahead.knee}


def told(forecast: dict[str, Any]) -> str:
    """The same for people."""
    low, expected, high = (duration(forecast["wall"][name]) for name in ("low", "expected", "high"))
    return (
        f"expected time {expected} ({low} to {high}), by {many_tasks(forecast['remembered'])} that the journal remembers; "
        f"workers past {forecast['knee']:,} the time improves by less than 5 %"
    )

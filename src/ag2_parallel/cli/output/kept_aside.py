"""Results of a run whose user named no file for them, once there are too many to be shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ag2_parallel.cli.output.writers import JsonLines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class KeptAside:
    """Writes all results to a file of its own in the working folder with the first one that a table does not show."""

    def __init__(self, run_id: str, most: int, say: Callable[[str], None]) -> None:
        """Nothing is touched yet.

        Args:
            run_id: Names the file.
            most: How many results a table shows.
            say: Tells where the results are.
        """
        self._path = Path(f"ag2-parallel-{run_id}.jsonl")
        self._most = most
        self._say = say
        self._first: list[Mapping[str, Any]] = []
        self._file: JsonLines | None = None

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        if self._file is not None:
            self._file.write(row)
            return
        self._first.append(row)
        if len(self._first) > self._most:
            self._file = JsonLines(self._path)
            self._say(f"more than {self._most} results, and no --out: all of them go to {self._path}")
            for each in self._first:
                self._file.write(each)
            self._first = []

    def close(self, summary: Mapping[str, Any]) -> None:
        """See `Writer`."""
        if self._file is not None:
            self._file.close(summary)
            self._say(f"all results are in {self._path}")

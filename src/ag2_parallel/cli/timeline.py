"""`ag2-parallel timeline`: the report page, or the Gantt as a picture, of a run that is over."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.reporting.gantt_plot import need_matplotlib
from ag2_parallel.reporting.timeline import PAGES, PICTURES
from ag2_parallel.results import ParallelTaskResult, TaskStatus
from ag2_parallel.run_results import RunResults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_JOURNAL: Final = b"SQLite format 3\x00"
"""How a journal's file begins."""

_LINES: Final = frozenset({".jsonl", ".ndjson"})
"""Endings of files with a result a line, as `--out` writes them."""


def write_timeline(source: Path, run: str | None, out: Path | None, say: Callable[[str], None]) -> Path:
    """Write the timeline of a run.

    Args:
        source: A file that `RunResults.to_json` or `--out` wrote, ending in .json or .jsonl, or a journal.
        run: The run of a journal or of JSON lines; None: the one taken last.
        out: Where to; None: `source` with the ending `.html`.
        say: Told where the file is.

    Raises:
        ConfigurationError: If there is nothing to show, or no file can be made of it; says what to do.
    """
    target = source.with_suffix(".html") if out is None else out
    results = _results(source, run)
    try:
        written = results.timeline(target)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{target}: cannot be written: {error}") from error
    say(f"{written}: {results!r}")
    return written


def refuse_undrawable(path: Path) -> None:
    """Look beforehand at where a run's timeline is to go, and at what it is drawn with.

    Raises:
        ConfigurationError: If it could not be drawn when the run is over.
    """
    if path.suffix.lower() not in (*PAGES, *PICTURES):
        raise ConfigurationError(f"--timeline {path}: a file ending in .html, .svg or .png is drawn")
    if not path.parent.is_dir():
        raise ConfigurationError(f"--timeline {path}: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigurationError(f"--timeline {path}: it cannot be written there")
    if path.suffix.lower() in PICTURES:
        need_matplotlib()


def _results(source: Path, run: str | None) -> RunResults:
    try:
        with source.open("rb") as file:
            is_journal = file.read(len(_JOURNAL)) == _JOURNAL
        if is_journal:
            return _from_journal(source, run)
        if source.suffix.lower() in _LINES:
            return _from_lines(source, run)
        results = RunResults.from_json(source)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{source}: cannot be read as the results of a run: {error}") from error
    if run is not None and run != results.run_id:
        raise ConfigurationError(f"{source}: holds run {results.run_id!r}, not {run!r}")
    return results


def _from_lines(source: Path, run: str | None) -> RunResults:
    """The rows of one run; of a task that is there more than once, as after `resume`, the last one."""
    last, by_name = run, dict[str, ParallelTaskResult]()
    known: set[str] = set()
    with source.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                result, of_run = ParallelTaskResult.from_dict(row), str(row["run_id"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"line {number} is no row of results: {error}; give a .json file or the journal"
                ) from error
            known.add(of_run)
            if run is None and of_run != last:
                last, by_name = of_run, {}
            if of_run == last:
                by_name.pop(result.name, None)
                by_name[result.name] = result
    if not by_name:
        there = f"there are {', '.join(sorted(known))}" if known else "there are no rows in it"
        raise ConfigurationError(f"{source}: holds no run{'' if run is None else f' {run!r}'}; {there}")
    results = sorted(by_name.values(), key=lambda result: result.index)
    return RunResults(results, run_id=str(last), metrics=_metrics(results))


def _from_journal(source: Path, run: str | None) -> RunResults:
    from ag2_parallel.journal import housekeeping
    from ag2_parallel.journal.reading import result_of
    from ag2_parallel.journal.sqlite import SqliteJournal

    store = SqliteJournal(source)
    listing = housekeeping.find_run(store, run)
    results = []
    for row in housekeeping.tasks(store, listing):
        if row.status is None:  # its process died, or it runs now
            unsettled = ParallelTaskResult(name=row.name, index=row.place, status=TaskStatus.CANCELLED)
            results.append(replace(unsettled, attempts=row.attempts, stop_reason=housekeeping.UNFINISHED))
        else:
            with store.reading() as db:
                results.append(result_of(db, source, row))
    return RunResults(results, run_id=listing.run_id, stop_reason=listing.stop_reason, metrics=_metrics(results))


def _metrics(results: Sequence[ParallelTaskResult]) -> dict[str, Any]:
    """What can be said of a run from its results alone."""
    ran = [(result.started_at, result.duration) for result in results if result.started_at is not None]
    if not ran:
        return {}
    began = min(started.timestamp() for started, _ in ran)
    wall = max(started.timestamp() + seconds for started, seconds in ran) - began
    task_seconds = sum(seconds for _, seconds in ran)
    mean = task_seconds / wall if wall > 0 else 0.0
    return {
        "wall": wall,
        "task_seconds": task_seconds,
        "longest": max(seconds for _, seconds in ran),
        "speedup": mean,
        "concurrency": {"mean": mean, "peak": _peak([(s.timestamp(), s.timestamp() + d) for s, d in ran])},
        "waited": sum(result.waited for result in results),
    }


def _peak(spans: Sequence[tuple[float, float]]) -> int:
    """The most that ran at once."""
    changes = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    return max(accumulate(change for _, change in changes))

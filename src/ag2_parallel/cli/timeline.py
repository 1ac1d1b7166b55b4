"""`ag2-parallel timeline`: the report page, or the Gantt as a picture, of a run that is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.run_results import RunResults

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_JOURNAL: Final = b"SQLite format 3\x00"
"""How a journal's file begins."""


def write_timeline(source: Path, run: str | None, out: Path | None, say: Callable[[str], None]) -> Path:
    """Write the timeline of a run.

    Args:
        source: A file that `RunResults.to_json` wrote, or a journal.
        run: The run of a journal; None: its only or last one.
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


def _results(source: Path, run: str | None) -> RunResults:
    try:
        with source.open("rb") as file:
            is_journal = file.read(len(_JOURNAL)) == _JOURNAL
        if is_journal:
            return _from_journal(source, run)
        results = RunResults.from_json(source)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{source}: cannot be read as the results of a run: {error}") from error
    if run is not None and run != results.run_id:
        raise ConfigurationError(f"{source}: holds run {results.run_id!r}, not {run!r}")
    return results


def _from_journal(source: Path, run: str | None) -> RunResults:
    named = "" if run is None else f" of run {run!r}"
    raise ConfigurationError(
        f"{source}: this version shows no timeline{named} from a journal; write the results with results.to_json(path)"
    )

"""Tasks that say how they are found again, so that `ag2-parallel resume` needs nothing but the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ag2_parallel.cli.run_settings import Format, RunSettings
from ag2_parallel.cli.task_files.plan import RowsWanted
from ag2_parallel.core.task_source import known_total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_AS_BEFORE = ("max_workers", "timeout", "handle_errors", "backend")
"""Options of the first life that the next one has too, unless it says something else."""


class FoundList(list[Any]):
    """A list of tasks, which a run checks whole."""

    found_by: Mapping[str, Any]


class FoundSource(Iterable[Any]):
    """Tasks that are read one by one.

    Attributes:
        found_by: What finds them again; None: nothing does.
        repeatable: Whether they can be read more than once.
        alike: What all of them, or all of a part, have in common; see `core.intake.Intake.refuse_alike`.
    """

    def __init__(self, tasks: Iterable[Any], found_by: Mapping[str, Any] | None) -> None:
        self._tasks = tasks
        self.found_by = found_by
        self.repeatable = getattr(tasks, "repeatable", True)
        self.alike = getattr(tasks, "alike", {})

    @property
    def total(self) -> int | None:
        """How many tasks there are; None: not known."""
        return known_total(self._tasks)

    def __iter__(self) -> Iterator[Any]:
        """Task by task."""
        return iter(self._tasks)


def found(tasks: Iterable[Any], files: Sequence[Path], rows: RowsWanted | None, settings: RunSettings) -> Iterable[Any]:
    """The tasks with how they are found again: those of a pipe, by who gives the data once more."""
    if rows is not None and rows.data == "-":
        return FoundSource(tasks, {"pipe": True})
    found_by = {
        "file": [str(path.resolve()) for path in files],
        "rows": None if rows is None else asdict(rows) | {"data": str(Path(rows.data).resolve())},
        "options": {name: settings.options[name] for name in _AS_BEFORE if name in settings.options},
        "form": str(settings.form),
        "out": None if settings.out is None else str(settings.out.resolve()),
        "transcripts": settings.transcripts,
        "max_cost": settings.max_cost,
        "timeline": None if settings.timeline is None else str(settings.timeline.resolve()),
    }
    if not isinstance(tasks, list):
        return FoundSource(tasks, found_by)
    listed = FoundList(tasks)
    listed.found_by = found_by
    return listed


def files_of(found_by: Mapping[str, Any]) -> tuple[list[Path], RowsWanted | None]:
    """What the run was started with."""
    rows = found_by["rows"]
    return [Path(path) for path in found_by["file"]], None if rows is None else RowsWanted(**rows)


def settings_of(
    found_by: Mapping[str, Any],
    run_id: str,
    options: Mapping[str, Any],
    *,
    form: Format | None,
    out: Path | None,
    timeline: Path | None,
) -> RunSettings:
    """The settings of the next life: those of the first, where nothing else is said.

    A file of results is written anew, since results that stand are written too: one row a task.
    """
    before = Path(found_by["out"]) if found_by["out"] is not None else None
    drawn = found_by.get("timeline")
    return RunSettings(
        options={**found_by["options"], **options},
        run_id=run_id,
        form=form or Format(found_by["form"]),
        out=out or before,
        overwrite=out is None or out.resolve() == before,
        transcripts=found_by["transcripts"],
        max_cost=found_by.get("max_cost"),
        timeline=timeline or (None if drawn is None else Path(drawn)),
    )

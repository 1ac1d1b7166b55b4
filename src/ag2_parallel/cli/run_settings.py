"""What the user asked for on the command line beside what is to be run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

BACKENDS: Final = (
    "Where tasks run: local (threads of this process, the default), process (worker processes of this machine), "
    "ray (a Ray cluster; needs the package ray)."
)


class Format(StrEnum):
    """What standard output gets."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


class OnError(StrEnum):
    """What a failed task does to the run."""

    COLLECT = "collect"
    FAIL_FAST = "fail_fast"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run of the command line is made and shown.

    Attributes:
        options: Options of the runner, over those of the files; None: not said.
        run_id: The run's name; None: made from the time.
        form: For standard output.
        out: A file or folder for the results; None: none.
        overwrite: Whether what is at `out` may be replaced.
        transcripts: Whether results have their chats and console text.
        dry_run: Whether the tasks are only checked and shown.
        canary: Tasks that run first, as a sample for a forecast; None: no forecast.
        yes: Whether the run goes on after the forecast without asking.
        max_cost: US dollars that the run may cost; None: no limit.
        timeline: A file for the report page or the picture of the run; None: none.
    """

    options: dict[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    form: Format = Format.TABLE
    out: Path | None = None
    overwrite: bool = False
    transcripts: bool = True
    dry_run: bool = False
    canary: int | None = None
    yes: bool = False
    max_cost: float | None = None
    timeline: Path | None = None


Workers = Annotated[int | None, typer.Option(min=1, max=10_000, help="Tasks at once.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds for each task.")]
OnErrorOption = Annotated[OnError | None, typer.Option(help="What a failed task does to the run.")]
Journal = Annotated[Path | None, typer.Option(help="Keep the run in this journal, to resume it.")]
RunId = Annotated[str | None, typer.Option(help="A name for the run.")]
Backend = Annotated[str | None, typer.Option(help=BACKENDS)]
FormatOption = Annotated[Format, typer.Option("--format", help="What standard output gets.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Results: a .jsonl (added to), .json, .csv or .parquet file, or a folder, one file a task."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")]
Transcripts = Annotated[bool, typer.Option(help="Keep chats and console text in the results.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check and show everything; call no model.")]
Canary = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Run N of the tasks first, then say what the run will take, and ask."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Go on after the forecast without asking.")]
MaxCost = Annotated[
    float | None,
    typer.Option(help="US dollars. The run is stopped past it, and not gone on with if the forecast is above it."),
]
Timeline = Annotated[
    Path | None, typer.Option(help="Draw the run: .html for the report page, .svg or .png for the Gantt.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]


def runner_options(
    *,
    workers: int | None,
    timeout: float | None,
    on_error: OnError | None,
    journal: Path | None,
    backend: str | None,
    quiet: bool,
) -> dict[str, Any]:
    """Keyword arguments of the runner that the command line says."""
    said = {
        "max_workers": workers,
        "timeout": timeout,
        "handle_errors": on_error and str(on_error),
        "journal": journal,
        "backend": backend,
        "progress": False if quiet else None,
    }
    return {name: value for name, value in said.items() if value is not None}

"""`ag2-parallel resume`: go on with a run that a journal has."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads it from the signature
from typing import TYPE_CHECKING, Annotated

import typer

from ag2_parallel.cli import run_settings as said
from ag2_parallel.cli.frame import exit_code

if TYPE_CHECKING:
    from ag2_parallel.cli.termination import Termination


class Rerun(StrEnum):
    """Which tasks with a result run again."""

    NOT_SUCCEEDED = "not_succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    NONE = "none"


class Changed(StrEnum):
    """What becomes of a task that would do something else than before."""

    RERUN = "rerun"
    KEEP = "keep"
    ERROR = "error"


class Uncertain(StrEnum):
    """What becomes of an effect that may have happened."""

    FAIL = "fail"
    REPEAT = "repeat"
    SKIP = "skip"


def resume(  # noqa: PLR0913 - typer reads the options from the signature
    journal: Annotated[Path, typer.Argument(help="The journal that the run was kept in.")],
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="The run; default: the last one.")] = None,
    *,
    rerun: Annotated[Rerun, typer.Option(help="Which tasks with a result run again.")] = Rerun.NOT_SUCCEEDED,
    changed: Annotated[Changed, typer.Option(help="What becomes of a task that changed.")] = Changed.RERUN,
    uncertain: Annotated[
        Uncertain, typer.Option(help="What becomes of an effect that may have happened.")
    ] = Uncertain.FAIL,
    workers: said.Workers = None,
    timeout: said.Timeout = None,
    on_error: said.OnErrorOption = None,
    backend: said.Backend = None,
    form: Annotated[said.Format | None, typer.Option("--format", help="What standard output gets.")] = None,
    out: said.Out = None,
    timeline: said.Timeline = None,
    quiet: said.Quiet = False,
) -> None:
    """Go on with a run: results that stand are not paid for again, tasks that were cut go on where they were.

    Files, options, --out and --timeline are those the run was started with, unless something else is said here; its
    file of results is written anew. Exit codes as those of `run`.
    """

    def command(termination: Termination) -> int:
        from ag2_parallel.cli.found_tasks import files_of, settings_of
        from ag2_parallel.cli.session import run_files
        from ag2_parallel.core.resuming import ResumePolicy
        from ag2_parallel.errors import ConfigurationError
        from ag2_parallel.run_record import resumable

        header = resumable(journal, run)
        run_id, found_by = header.run_id, header.source or {}
        if "pipe" in found_by:
            raise ConfigurationError(
                f"run {run_id!r} read a pipe: give it the same command and data again, with --run-id {shlex.quote(run_id)}"
            )
        if "file" not in found_by:
            raise ConfigurationError(
                f"run {run_id!r} was not started from files: go on with it in Python, by runner.resume(journal, tasks)"
            )
        options = said.runner_options(
            workers=workers, timeout=timeout, on_error=on_error, journal=journal, backend=backend, quiet=quiet
        )
        files, rows = files_of(found_by)
        settings = settings_of(found_by, run_id, options, form=form, out=out, timeline=timeline)
        return run_files(files, settings, termination, rows, ResumePolicy(rerun.value, changed.value, uncertain.value))

    raise typer.Exit(exit_code(command))

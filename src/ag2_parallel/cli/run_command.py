"""`ag2-parallel run`: the tasks of task files."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it from the signature
from typing import TYPE_CHECKING, Annotated

import typer

from ag2_parallel.cli import run_settings as said
from ag2_parallel.cli.frame import exit_code

if TYPE_CHECKING:
    from ag2_parallel.cli.termination import Termination


def run(  # noqa: PLR0913 - typer reads the options from the signature
    files: Annotated[
        list[Path], typer.Argument(help="Task files: .yaml, .json, .jsonl, .csv. Several are taken together.")
    ],
    *,
    workers: said.Workers = None,
    timeout: said.Timeout = None,
    on_error: said.OnErrorOption = None,
    journal: said.Journal = None,
    run_id: said.RunId = None,
    backend: said.Backend = None,
    form: said.FormatOption = said.Format.TABLE,
    out: said.Out = None,
    overwrite: said.Overwrite = False,
    transcripts: said.Transcripts = True,
    dry_run: said.DryRun = False,
    canary: said.Canary = None,
    max_cost: said.MaxCost = None,
    yes: said.Yes = False,
    timeline: said.Timeline = None,
    quiet: said.Quiet = False,
) -> None:
    """Run the tasks of task files.

    Results go to standard output and to --out, everything else to standard error. Exit codes: 0 all succeeded,
    1 some did not, 2 usage or configuration, 3 the run failed, 130 interrupted, 143 terminated.
    """

    def command(termination: Termination) -> int:
        from ag2_parallel.cli.session import run_files

        options = said.runner_options(
            workers=workers, timeout=timeout, on_error=on_error, journal=journal, backend=backend, quiet=quiet
        )
        settings = said.RunSettings(
            options=options, run_id=run_id, form=form, out=out, overwrite=overwrite, transcripts=transcripts,
            dry_run=dry_run, canary=canary, yes=yes, max_cost=max_cost, timeline=timeline,
        )  # fmt: skip
        return run_files(files, settings, termination)

    raise typer.Exit(exit_code(command))

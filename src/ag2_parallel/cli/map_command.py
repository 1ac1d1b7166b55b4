"""`ag2-parallel map`: one task for each row of a data set."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it from the signature
from typing import TYPE_CHECKING, Annotated

import typer

from ag2_parallel.cli import run_settings as said
from ag2_parallel.cli.frame import exit_code

if TYPE_CHECKING:
    from ag2_parallel.cli.termination import Termination


def map_rows(  # noqa: PLR0913 - typer reads the options from the signature
    agent_file: Annotated[Path, typer.Argument(help="A task file with the model, agents and teams.")],
    data: Annotated[
        str, typer.Argument(help="A .csv, .jsonl, .json or .parquet file, a folder of text files, or - for a pipe.")
    ],
    *,
    prompt: Annotated[str | None, typer.Option(help='A template over the columns: "Summarise {{ text }}".')] = None,
    name: Annotated[str | None, typer.Option(help='A template for the tasks\' names: "{{ id }}".')] = None,
    agent: Annotated[str | None, typer.Option(help="Which agent or team of the file; default: the only one.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of the data; default: UTF-8.")] = None,
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
    """Run one task for each row of a data set.

    Rows are read as workers become free. A template that needs a column that is not there is found before anything
    starts; a bad row is a failed result that names it. Exit codes as those of `run`.
    """

    def command(termination: Termination) -> int:
        from ag2_parallel.cli.session import run_files
        from ag2_parallel.cli.task_files.plan import RowsWanted

        options = said.runner_options(
            workers=workers, timeout=timeout, on_error=on_error, journal=journal, backend=backend, quiet=quiet
        )
        settings = said.RunSettings(
            options=options, run_id=run_id, form=form, out=out, overwrite=overwrite, transcripts=transcripts,
            dry_run=dry_run, canary=canary, yes=yes, max_cost=max_cost, timeline=timeline,
        )  # fmt: skip
        rows = RowsWanted(data, prompt, name, agent, encoding)
        return run_files([agent_file], settings, termination, rows)

    raise typer.Exit(exit_code(command))

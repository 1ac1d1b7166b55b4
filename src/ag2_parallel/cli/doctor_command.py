"""`ag2-parallel doctor`: what is installed, what is reachable, and what to do."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it from the signature
from typing import TYPE_CHECKING, Annotated

import typer

from ag2_parallel.cli import run_settings as said
from ag2_parallel.cli.frame import exit_code

if TYPE_CHECKING:
    from ag2_parallel.cli.termination import Termination


def doctor(
    files: Annotated[list[Path] | None, typer.Argument(help="Task files whose model servers are asked.")] = None,
    *,
    base_url: Annotated[str | None, typer.Option(help="A model server to ask.")] = None,
    api_key_env: Annotated[str, typer.Option(help="Environment variable with its key.")] = "OPENAI_API_KEY",
    journal: Annotated[Path | None, typer.Option(help="A journal that runs will be kept in.")] = None,
    form: said.FormatOption = said.Format.TABLE,
) -> None:
    """Look at the installation, keys, model servers and the journal, and say what to do.

    No model is called and no value of a key is shown. Exit codes: 0 all is well, 1 something has to be done,
    2 usage.
    """

    def command(_termination: Termination) -> int:
        from ag2_parallel.cli.doctor.examination import examine, show

        return show(examine(files or [], base_url, api_key_env, journal), form)

    raise typer.Exit(exit_code(command))

"""`ag2-parallel schema`: the JSON schema of task files."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON schema of task files, for editors and validators."""
    from ag2_parallel.cli.task_files.models import file_schema

    typer.echo(json.dumps(file_schema(), indent=2))

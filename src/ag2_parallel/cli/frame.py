"""What all commands have around them: messages on standard error, and an exit code for every end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ag2_parallel.cli import exit_codes
from ag2_parallel.cli.log_lines import log_lines
from ag2_parallel.cli.termination import Termination
from ag2_parallel.errors import Ag2ParallelError, ConfigurationError, JournalError, JournalLockedError

if TYPE_CHECKING:
    from collections.abc import Callable


def exit_code(command: Callable[[Termination], int]) -> int:
    """Run a command; its errors become a message and an exit code."""
    with Termination() as termination, log_lines(termination):
        try:
            return command(termination)
        except Ag2ParallelError as error:
            say(f"error: {error}")
            wrong = isinstance(error, ConfigurationError | JournalError) and not isinstance(error, JournalLockedError)
            return exit_codes.USAGE if wrong else exit_codes.RUN_FAILED
        except KeyboardInterrupt as error:
            what = "terminated" if termination.received else "interrupted"
            how = getattr(error, "how_to_resume", None)
            say(what if how is None else f"{what}; go on with: {how}")
            return exit_codes.TERMINATED if termination.received else exit_codes.INTERRUPTED


def say(message: str) -> None:
    """Tell people something."""
    typer.echo(f"ag2-parallel: {message}", err=True)

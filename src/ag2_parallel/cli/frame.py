"""What all commands have around them: messages on standard error, and an exit code for every end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from ag2_parallel.cli import exit_codes
from ag2_parallel.cli.log_lines import log_lines
from ag2_parallel.cli.termination import Termination
from ag2_parallel.cli.typed_options import as_typed
from ag2_parallel.errors import Ag2ParallelError, ConfigurationError, JournalError, JournalLockedError

if TYPE_CHECKING:
    from collections.abc import Callable


_programs: Final[list[typer.Typer]] = []
"""The program, which is made of commands that use this module."""


def exit_code(command: Callable[[Termination], int]) -> int:
    """Run a command; its errors become a message and an exit code."""
    with Termination() as termination, log_lines(termination):
        try:
            return command(termination)
        except Ag2ParallelError as error:
            say(f"error: {_in_words_of_the_shell(str(error))}")
            wrong = isinstance(error, ConfigurationError | JournalError) and not isinstance(error, JournalLockedError)
            return exit_codes.USAGE if wrong else exit_codes.RUN_FAILED
        except KeyboardInterrupt as error:
            what = "terminated" if termination.received else "interrupted"
            how = getattr(error, "how_to_resume", None)
            say(what if how is None else f"{what}; go on with: {how}")
            return exit_codes.TERMINATED if termination.received else exit_codes.INTERRUPTED


def speak_for(app: typer.Typer) -> None:
    """Errors name the options of this program's commands as one types them."""
    _programs.append(app)


def _in_words_of_the_shell(message: str) -> str:
    for app in _programs:
        message = as_typed(message, app)
    return message


def say(message: str) -> None:
    """Tell people something."""
    typer.echo(f"ag2-parallel: {message}", err=True)

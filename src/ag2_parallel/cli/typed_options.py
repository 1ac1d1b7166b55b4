"""Messages of the library in the words of the shell: `changed="keep"` is `--changed keep` there."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARGUMENT: Final = re.compile(r'\b([a-z_]+)="([^"]*)"')
"""An argument as Python writes it."""

_OTHER_NAMES: Final = {"max_workers": "workers", "handle_errors": "on_error"}
"""Arguments of the library that the command line calls otherwise."""


def as_typed(message: str, app: typer.Typer) -> str:
    """The message with each argument that is an option of a command of `app` as one types it; the rest stays."""
    if not _ARGUMENT.search(message):
        return message
    options = _options(app)

    def typed(found: re.Match[str]) -> str:
        option = options.get(found[1])
        return found[0] if option is None else f"{option} {shlex.quote(found[2])}"

    return _ARGUMENT.sub(typed, message)


@cache
def _options(app: typer.Typer) -> Mapping[str, str]:
    """The options of all commands by the names of their parameters."""
    commands = getattr(typer.main.get_command(app), "commands", {})
    options = {
        str(parameter.name): next(name for name in parameter.opts if name.startswith("--"))
        for command in commands.values()
        for parameter in command.params
        if parameter.param_type_name == "option"
    }
    return options | {name: options[other] for name, other in _OTHER_NAMES.items() if other in options}

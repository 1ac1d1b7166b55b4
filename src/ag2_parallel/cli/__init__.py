"""The command line: `ag2-parallel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        argv: The arguments after the program's name; None: those of the process.

    Returns:
        The exit code, one of `ag2_parallel.cli.exit_codes`.
    """
    from ag2_parallel.cli.commands import app

    try:
        app(args=None if argv is None else list(argv), prog_name="ag2-parallel")
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 0
    return 0

"""The command line: `ag2-parallel`."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from ag2_parallel.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

_LAST_WORDS: Final = 0.3
"""Seconds that an interrupted program waits for whoever reads its output, such as a pager."""


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


def program() -> NoReturn:
    """Run the program of this process, and end it.

    What is left of stuck tasks, such as a pool that their own code made, is not waited for: Python would join its
    threads. Exit hooks run, and everything written is flushed.
    """
    code = main()
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for it
    flushing = threading.Thread(target=_flush, daemon=True)
    flushing.start()
    flushing.join(_LAST_WORDS if code in {exit_codes.INTERRUPTED, exit_codes.TERMINATED} else None)
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()

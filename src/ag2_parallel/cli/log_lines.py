"""Warnings of this package's log, as the program's other messages look."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ag2_parallel.cli.termination import Termination


class LogLines(logging.Handler):
    """Writes warnings to standard error; nothing where code of the user's has set up logging itself."""

    def __init__(self, termination: Termination) -> None:
        """`termination` knows whether an interrupt was a SIGTERM."""
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("ag2-parallel: %(message)s"))
        self._termination = termination

    @property
    def stream(self) -> TextIO:
        """Standard error, whatever it is at the time."""
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record down."""
        stage = getattr(record, "interrupts", None)
        if logging.getLogger().handlers or (self._termination.received and stage == 1):
            return  # SIGTERM goes on to the second stage at once, and is told of there
        text = self.format(record)
        if self._termination.received and stage is not None:
            text = text.replace("interrupted again", "terminated", 1)
        self.stream.write(f"{text}\n")
        self.stream.flush()


@contextmanager
def log_lines(termination: Termination) -> Iterator[None]:
    """Show warnings for the length of the block."""
    logger, lines = logging.getLogger("ag2_parallel"), LogLines(termination)
    logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)

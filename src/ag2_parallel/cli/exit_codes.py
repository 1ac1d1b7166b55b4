"""What the program's exit code says."""

from __future__ import annotations

from typing import Final

OK: Final = 0
"""All tasks succeeded."""

SOME_FAILED: Final = 1
"""Some tasks did not succeed."""

USAGE: Final = 2
"""The command line or the configuration is wrong; nothing ran."""

RUN_FAILED: Final = 3
"""The run as a whole failed."""

INTERRUPTED: Final = 130
"""Ctrl-C."""

TERMINATED: Final = 143
"""SIGTERM."""

"""Names and places of runs."""

from __future__ import annotations

import os
import secrets
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from ag2_parallel.errors import ConfigurationError


def new_run_id() -> str:
    """A name made from the time, unique on this machine for all practical purposes."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def default_directory() -> Path:
    """Where tasks have their folders if nobody says: the user's own, under the system's temporary folder."""
    return Path(tempfile.gettempdir()) / f"ag2-parallel-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def check_run_id(run_id: object) -> None:
    """Refuse a run's name that cannot be part of a path.

    Raises:
        ConfigurationError: If it is not 1 to 100 letters, digits, `.`, `_` or `-`, the first neither dot nor dash.
    """
    fit = isinstance(run_id, str) and 0 < len(run_id.encode("utf-8", "replace")) <= 200 and run_id[0] not in ".-"
    if run_id is not None and not (fit and all(c.isalnum() or c in "._-" for c in str(run_id))):
        raise ConfigurationError(
            f"run_id: {run_id!r} is not 1 to 100 letters, digits, dots, underscores or dashes, the first no dot or dash"
        )

"""Names of runs, which are parts of paths."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from ag2_parallel.errors import ConfigurationError


def new_run_id() -> str:
    """A name made from the time."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def check_run_id(run_id: object) -> None:
    """Refuse a run's name that cannot be part of a path.

    Raises:
        ConfigurationError: If it is not 1 to 100 letters, digits, `.`, `_` or `-`, the first no dot.
    """
    fit = isinstance(run_id, str) and 0 < len(run_id) <= 100 and not run_id.startswith(".")
    if run_id is not None and not (fit and all(c.isalnum() or c in "._-" for c in str(run_id))):
        raise ConfigurationError(f"run_id: {run_id!r} is not 1 to 100 letters, digits, dots, underscores or dashes")

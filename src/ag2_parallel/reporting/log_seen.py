"""Whether people see this package's log, so that nothing is told them twice."""

from __future__ import annotations

import logging
import sys


def log_is_seen() -> bool:
    """Whether warnings of the log go to standard error, by themselves or by a handler."""
    logger: logging.Logger | None = logging.getLogger("ag2_parallel")
    handlers: list[logging.Handler] = []
    while logger is not None:
        handlers += logger.handlers
        logger = logger.parent if logger.propagate else None
    shown = {id(sys.stderr), id(sys.__stderr__)}
    if not handlers:
        return logging.lastResort is not None
    return any(id(getattr(handler, "stream", None)) in shown for handler in handlers)

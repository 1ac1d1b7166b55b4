"""The real clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """The process's clock: `ports.Clock`."""

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""
        return datetime.now(UTC)

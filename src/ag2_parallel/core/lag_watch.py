"""How late the engine is while a run is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.core.engine import Engine

_WARNED_AT = 1.0
"""Seconds of lag past which it is said, once, that something holds the interpreter."""


class LagWatch:
    """Remembers the worst lag and warns of the first bad one. `begin` and `end` are for the engine loop.

    Attributes:
        worst: The longest lag so far, in seconds.
    """

    def __init__(self, engine: Engine, warn: Callable[[str], None]) -> None:
        """Say what is wrong through `warn`."""
        self.worst = 0.0
        self._engine = engine
        self._warn = warn
        self._end: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Watch from now on."""
        self._end = self._engine.watch_lag(self._late)

    def end(self) -> None:
        """Watch no more."""
        self._end()

    def _late(self, lag: float) -> None:
        if lag > _WARNED_AT >= self.worst:
            self._warn(
                f"the engine was held up for {lag:.1f} s: a C call kept the interpreter lock, or the machine is "
                "overloaded; time limits are late by as much"
            )
        self.worst = max(self.worst, lag)

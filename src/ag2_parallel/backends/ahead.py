"""Waiting for workers that are started before there is anything to run, so that no task's time pays for their start."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from ag2_parallel.errors import Ag2ParallelError

_log = logging.getLogger("ag2_parallel")

_OTHERS: Final = 5.0
"""Seconds that are given to the others when one is ready; who is later joins later."""

_WARNING: Final = 10.0
_LONGEST: Final = 600.0
"""Seconds; a cluster that grows needs minutes for a machine."""


class Ahead:
    """Counts workers that are being started."""

    def __init__(self) -> None:
        """Nobody is expected yet."""
        self._changed = threading.Condition()
        self._expected: int | None = None
        self._ready = 0
        self._failed: list[str] = []

    def expect(self, count: int) -> None:
        """So many were started."""
        with self._changed:
            self._expected = count
            self._changed.notify_all()

    def came(self) -> None:
        """One is ready."""
        with self._changed:
            self._ready += 1
            self._changed.notify_all()

    def failed(self, why: str) -> None:
        """One ended before it was ready."""
        with self._changed:
            self._failed.append(why)
            self._changed.notify_all()

    def give_up(self) -> None:
        """Nobody is wanted any more."""
        self.expect(0)

    def wait(self) -> None:
        """Wait for the first, and a moment for the others; blocking.

        Raises:
            Ag2ParallelError: If none could be started; says why.
        """
        until = time.monotonic() + _LONGEST
        with self._changed:
            while not self._changed.wait_for(self._usable, _WARNING):
                if time.monotonic() > until:
                    raise Ag2ParallelError(
                        f"option backend: no actor has started in {_LONGEST:g} s; is there room in the cluster?"
                    )
                _log.warning("no actor has started yet: the cluster has no room for one, or starts a machine")
            self._changed.wait_for(self._settled, _OTHERS)
            if self._failed and not self._ready:
                raise Ag2ParallelError(f"option backend: no actor could be started: one {self._failed[0]}")

    def _usable(self) -> bool:
        return bool(self._ready) or self._settled()

    def _settled(self) -> bool:
        return self._expected is not None and self._ready + len(self._failed) >= self._expected

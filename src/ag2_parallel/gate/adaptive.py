"""How many calls an endpoint gets at once, found from its refusals: additive increase, multiplicative decrease; pure.

Slow start doubles the window with each round of answers until the first 429. Each episode of 429s
lowers it once: to nine tenths of what the server let through of it, and never below half. Then it grows by
one call a round, and past the size at which it was last refused ten times slower, until that is well behind.
"""

from __future__ import annotations

from typing import Final

from ag2_parallel.gate.limits import Limit, Need
from ag2_parallel.gate.rate import AT_ONCE, NOT_KNOWN

_FIRST: Final = 4.0
_KEPT: Final = 0.9
_LEAST_KEPT: Final = 0.5
_PROBING: Final = 0.1
_BEHIND: Final = 1.1


class Window(Limit):
    """The calls that one endpoint may have in flight.

    Attributes:
        size: How many; rounded where it counts.
        in_flight: How many there are.
    """

    __slots__ = ("_before", "_ceiling", "_episode_at", "_held_up", "_refused", "_slow_start", "in_flight", "size")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.size = _FIRST
        self.in_flight = 0
        self._slow_start = True
        self._held_up = 0
        self._episode_at = AT_ONCE
        self._before = self._ceiling = _FIRST
        self._refused = 0

    def ready_at(self, need: Need, now: float) -> float:
        if self.in_flight < int(self.size + 0.5):
            return AT_ONCE
        self._held_up = int(self.size)
        return NOT_KNOWN

    def take(self, need: Need, now: float) -> None:
        self.in_flight += 1

    def undo(self, need: Need) -> None:
        self.in_flight -= 1

    def done(self, need: Need, used: int | None, now: float) -> None:
        self.in_flight -= 1

    def went_through(self) -> None:
        """A call was answered, and not with 429; the window grows only where it held a call up within a round."""
        if not self._held_up:
            return
        self._held_up -= 1
        if self._slow_start:
            self.size += 1
        else:
            near = self._ceiling <= self.size + 0.5 and self.size <= self._ceiling * _BEHIND + 1
            self.size += (_PROBING if near else 1.0) / self.size

    def refused(self, sent_at: float, now: float) -> None:
        """A call let go at `sent_at` was answered with 429."""
        if sent_at > self._episode_at:
            self._episode_at = now
            self._before = float(int(self.size + 0.5))
            self._refused = 0
            self._slow_start = False
        self._refused += 1
        let_through = self._before - self._refused
        self._ceiling = max(1.0, let_through)
        self.size = max(1.0, self._before * _LEAST_KEPT, let_through * _KEPT)

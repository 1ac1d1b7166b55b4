"""How fast an endpoint is met that has not been called before: as fast as it shows that it takes calls; pure.

Calls that are on their way and young may all be refused, so they are few: sixteen at first, and
as many as there are proven ones later on, soon twice as many. A call is proven once it was answered, or once
nothing came of it for a tenth of a second, or for ten times as long as the slowest quick answer so far took: refusals are
quick, answers need not be. An answer that took longer than three tenths of a second is a model's time, and says nothing of how
soon a refusal would be here. Sixteen, thirty, seventy: a thousand are on their way within half a second.

Of the time between two looks no more than five thousandths of a second count. While calls wait, a loop that has nothing else to
do looks as often as that; on one that is busy with what starts, refusals lie there unread, and servers on the same machine are slow.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ag2_parallel.gate.rate import AT_ONCE

_YOUNG: Final = 0.1
_YOUNG_AT_MOST: Final = 1.0
_SLOWER: Final = 10.0
_QUICK: Final = 0.3
_LOOK: Final = 0.005
_FIRST: Final = 16
_SPARED: Final = 24
_WARM: Final = 2000
"""Proven calls after which nothing is counted any more."""


class ColdStart:
    """The first calls of an endpoint."""

    __slots__ = ("_age", "_answered", "_looked_at", "_old", "_sent", "_time", "_young")

    def __init__(self) -> None:
        self._sent = self._answered = self._old = 0
        self._young: deque[float] = deque()
        self._age = _YOUNG
        self._time = 0.0
        self._looked_at = AT_ONCE

    def ready_at(self, now: float) -> float:
        """When one more call may go, or when to look again."""
        if self._old >= _WARM:
            return AT_ONCE
        self._look(now)
        proven = max(self._old, self._answered)
        if self._sent - proven < max(_FIRST, 2 * proven - _SPARED):
            return AT_ONCE
        return now + min(_LOOK, max(self._young[0] + self._age - self._time, 0.001))

    def take(self, now: float) -> None:
        """A call goes."""
        if self._old < _WARM:
            self._look(now)
            self._sent += 1
            self._young.append(self._time)

    def undo(self) -> None:
        """A call that was let go was not sent after all."""
        if self._young:
            self._young.pop()
            self._sent -= 1

    def answered(self, seconds: float) -> None:
        """A call was answered after so many seconds, and not refused."""
        self._answered += 1
        if seconds < _QUICK:
            self._age = min(max(self._age, _SLOWER * seconds), _YOUNG_AT_MOST)

    def _look(self, now: float) -> None:
        self._time += min(now - self._looked_at, _LOOK)
        self._looked_at = now
        while self._young and self._young[0] + self._age <= self._time + 1e-6:
            self._young.popleft()
            self._old += 1

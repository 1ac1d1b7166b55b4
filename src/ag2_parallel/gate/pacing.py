"""What an endpoint that answered 429 gets from then on, pure: a pause, then an even pace.

It is paused for as long as it asked for, or for a backoff of our own that doubles while the trouble
lasts. Then it is paced from what it last let through: the requests that were not refused, over
the time from the first of them to the end of the pause. That is right for servers that count in
fixed windows and name the end of the window, and for those that count in sliding ones. The pace grows
cautiously while it is what holds calls up: by a twentieth for each such time, faster where it was
measured from hardly anything. The pause ends without a burst, so no two calls wake up together.

Before its first 429 an endpoint is not stormed either: six requests go in the first 50 ms, and
two fifths more in each 50 ms that follow as long as all is used. So when the first 429 comes, few are on their way.

Refusals of requests that were on their way when the first one came belong to the same episode.
"""

from __future__ import annotations

from typing import Final

from ag2_parallel.gate.limits import Limit, Need
from ag2_parallel.gate.rate import AT_ONCE, Pacer

_GAP: Final = 1.0
"""Seconds without a request after which the counting of what goes through starts anew."""

_HORIZON: Final = 60.0
"""Seconds of counting after which the older half is forgotten: providers count by the minute."""

_LONGEST_PAUSE: Final = 30.0
"""Seconds of a pause that the server did not ask for."""

_STEP: Final = 0.05
_FIRST_STEP: Final = 6.0
_STEP_GROWTH: Final = 1.4

_SHORTEST_SPAN: Final = 0.05
_EASED: Final = 0.9
_CAREFUL: Final = 0.97


class EndpointPace(Limit):
    """One endpoint, as one key sees it.

    Attributes:
        growth: The share by which the pace grows in the time in which as much went through as it was measured from.
    """

    patience = 3600.0

    __slots__ = (
        "_count", "_episode_at", "_evidence", "_held", "_in_step", "_last_sent", "_measured", "_pace", "_pause",
        "_prior", "_resume_at", "_since", "_step_at", "_step_room", "_strikes", "growth",
    )  # fmt: skip

    def __init__(self, name: str, growth: float = 0.05) -> None:
        super().__init__(name)
        self.growth = growth
        self._since = self._last_sent = AT_ONCE
        self._count = 0.0
        self._prior: tuple[float, float] = (AT_ONCE, 0.0)
        self._episode_at = self._resume_at = AT_ONCE
        self._pause = 0.0
        self._strikes = 0
        self._measured = True
        self._pace: Pacer | None = None
        self._evidence = 0.0
        self._held = False
        self._step_at = AT_ONCE
        self._step_room = _FIRST_STEP
        self._in_step = 0

    @property
    def rate(self) -> float | None:
        """Requests a second it is paced at; None where it never answered 429."""
        return None if self._pace is None else self._pace.rate

    @property
    def resumes_at(self) -> float:
        """When the last pause ends or ended."""
        return self._resume_at

    def ready_at(self, need: Need, now: float) -> float:
        if now < self._resume_at:
            return self._resume_at
        if not self._measured:
            self._measure()
        if self._pace is None:
            return AT_ONCE if self._in_step < self._step_room else self._step_at + _STEP
        at = self._pace.ready_at(1.0)
        self._held = self._held or at > now
        return at

    def kept_for(self, need: Need) -> float:
        return 0.0 if self._pace is None else 1 / self._pace.rate

    def not_before(self, need: Need, priority: int, now: float) -> float:
        return self._resume_at  # the pace may grow meanwhile

    def take(self, need: Need, now: float) -> None:
        gap = _GAP if self._pace is None else max(_GAP, 3 / self._pace.rate)
        if now - self._last_sent > gap and now - self._resume_at > gap:
            self._since, self._count = now, 0.0
        elif now - self._since > _HORIZON:
            self._since, self._count = now - _HORIZON / 2, self._count / 2
        self._last_sent = now
        self._count += 1
        if self._pace is not None:
            self._pace.take(1.0, now)
            return
        if now >= self._step_at + _STEP:
            if self._in_step >= self._step_room:
                self._step_room *= _STEP_GROWTH
            self._step_at, self._in_step = now, 0
        self._in_step += 1

    def undo(self, need: Need) -> None:
        self._count = max(0.0, self._count - 1)
        if self._pace is not None:
            self._pace.give_back(1.0)

    def went_through(self) -> None:
        """A request was answered, and not with 429."""
        if self._pace is not None and self._held:
            self._held = False
            known = self._evidence + 1
            self._pace.rate *= 1 + max(1 / known**2, self.growth / known)

    def refused(self, sent_at: float, now: float, hint: float | None, backoff: float) -> bool:
        """A request was answered with 429; True if that begins a new episode.

        Args:
            sent_at: When it was let go.
            now: The time.
            hint: Seconds the server asks to wait; more than an hour is this call's own affair, or nonsense.
            backoff: Seconds to wait where the trouble is new and the server asks for nothing.
        """
        if hint is not None and hint > self.patience:
            hint = None
        if sent_at >= self._since:
            self._count = max(0.0, self._count - 1)
        if sent_at <= self._episode_at:
            self._resume_at = max(self._resume_at, now + (hint or 0.0))
            return False
        if not self._measured:
            self._measure()
        if self._pace is not None and now - self._resume_at < max(self._pause, _GAP):
            self._strikes += 1
            self._since, self._count = self._prior[0], self._prior[1] + self._count
        else:
            self._strikes = 0
            if self._pace is not None:
                self._pace.rate *= _EASED
        own = min(backoff * 2.0 ** min(self._strikes, 30), _LONGEST_PAUSE)
        self._pause = max(hint, own if self._strikes else 0.0) if hint else own
        self._episode_at = now
        self._resume_at = now + self._pause
        self._measured = False
        return True

    def _measure(self) -> None:
        """The pause is over: pace from what went through until now."""
        span = max(self._resume_at - self._since, _SHORTEST_SPAN)
        let_through = max(self._count, 1.0)
        rate = _CAREFUL * let_through / span
        if self._pace is not None and not self._strikes:
            rate = max(rate, self._pace.rate)
        self._pace = Pacer(rate, unit=1.0)
        self._pace.begin_at(self._resume_at)
        self._evidence = self._count
        self._prior = (self._since, self._count)
        self._since, self._count = self._resume_at, 0.0
        self._held = False
        self._measured = True

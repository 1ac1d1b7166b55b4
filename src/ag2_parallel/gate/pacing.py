"""What an endpoint that answered 429 gets from then on, pure: a pause, then an even pace, if there is a limit.

Theory of operation
===================

A 429 may tell of a limit, or of nothing that fewer calls would change. What tells them apart is
what became of the calls that were sent after the refused one. Behind a limit most of them are refused, too;
otherwise the answers go on to come as before. So both are weighed: four answers to calls sent
since the trouble began bear one refusal, and five refusals at most can be borne in advance.

::

    open or paced ── 429 that nothing bears ──► paused ── its time is over ──► paced
          ▲                                       │
          └──── answers to later calls come ──────┘

Paused, an endpoint gets nothing for as long as it asked for, or for a backoff of our own that doubles as long
as more is refused than answered. Where answers show meanwhile that there is no limit, the pause ends at once, and all is
as before. Else the endpoint is paced from what it last let through: the requests that were not refused,
over the time from the first of them to the end of the pause. That is right for servers that
count in fixed windows and name the end of the window, and for those that count in sliding ones. The pace
grows cautiously while it is what holds calls up and refusals are rare: by a twentieth for each such time, faster
where it was measured from hardly anything, or where only one measure tells of a limit. The pause ends without a
burst, so no two calls wake up together.

A share that is refused at a pace that went through before has nothing to do with the pace. It is borne from then on,
and the pace doubles. Where no larger share is refused then, it doubles again; where one is, there is a limit as well,
and twice as many calls are wanted before the next doubling.

Refusals of requests that were on their way when the first one came belong to the same episode.
A refused call itself waits as long as the server asks in any case.
"""

from __future__ import annotations

from typing import Final

from ag2_parallel.gate.cold_start import ColdStart
from ag2_parallel.gate.limits import NOTHING, Limit, Need
from ag2_parallel.gate.rate import AT_ONCE, Pacer

_BEARS: Final = 0.25
"""Refusals that one answer bears: a share of a fifth in all."""

_BORNE_AT_MOST: Final = 5.0

_RARE: Final = 3
"""Answers in a row, for each refusal that one bears, from which on a pace may grow."""

_SAME: Final = 1.1
"""A pace so many times the one that was found is still the same."""

_TELLING: Final = 10
_REMEMBERED: Final = 40
"""Calls from which the share that is refused at a pace can be told, and those that are remembered for it."""

_MOST_BORNE: Final = 0.5
_AMPLY: Final = 1.3
_FORGOTTEN: Final = 0.005
"""A share that is refused at any pace is borne with so much to spare, up to a half, and forgotten with so much of each answer."""

_ENOUGH: Final = 16
_LEAST_SHARE: Final = 0.08
_FASTER: Final = 2.0
"""A pace doubles once at least such a share of so many calls was refused at it, and no larger one at the pace before."""

_OPEN: Final = 100
"""Answers in a row from which on nothing seems to be limited."""

_CREDIT: Final = 1.0
_CREDIT_WHEN_FASTER: Final = 2.0
"""Refusals that are borne in advance by a new pace: of a single one nothing can be told."""

_AGREES: Final = 1.5
_UNSURE_GROWTH: Final = 0.5
_FEW: Final = 5
"""A limit is sure once it was found twice within this ratio; until then a pace grows by a half instead of a twentieth.
A measure of hardly any calls is given up at once, but for no more than a few answers."""

_GAP: Final = 1.0
"""Seconds without a request after which the counting of what goes through starts anew."""

_HORIZON: Final = 60.0
"""Seconds of counting after which the older half is forgotten: providers count by the minute."""

_LONGEST_PAUSE: Final = 30.0
"""Seconds of a pause that the server did not ask for."""

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
        "_answered", "_bears", "_borne", "_count", "_doubled", "_enough", "_episode_at", "_episode_of", "_evidence", "_found",
        "_held", "_in_flight", "_in_row", "_last_sent", "_measured", "_pace", "_pause", "_prior", "_refusals", "_refused",
        "_resume_at", "_share", "_since", "_start", "_strikes", "_sure", "_tally", "growth",
    )  # fmt: skip

    def __init__(self, name: str, growth: float = 0.05) -> None:
        super().__init__(name)
        self.growth = growth
        self._start = ColdStart()
        self._in_flight = 0
        # What was sent since when, and not refused; and the same before the last pause.
        self._since = self._last_sent = AT_ONCE
        self._count = 0.0
        self._prior: tuple[float, float] = (AT_ONCE, 0.0)
        # The episode: when its first refusal came, when that call was sent, what came since.
        self._episode_at = self._episode_of = self._resume_at = AT_ONCE
        self._pause = self._borne = 0.0
        self._bears = _BEARS
        self._tally = (0.0, 0.0)
        self._answered = self._refused = self._in_row = self._refusals = self._strikes = 0
        self._measured = True
        self._pace: Pacer | None = None
        self._evidence = self._found = 0.0
        self._held = self._sure = False
        # Refusals that have nothing to do with the pace: their share, and whether the pace was doubled for it.
        self._share = 0.0
        self._enough = _ENOUGH
        self._doubled = False

    @property
    def rate(self) -> float | None:
        """Requests a second it is paced at; None where no limit showed itself."""
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
            return self._start.ready_at(now)
        at = self._pace.ready_at(1.0)
        self._held = self._held or at > now
        return at

    def kept_for(self, need: Need) -> float:
        return 0.0 if self._pace is None else 1 / self._pace.rate

    def not_before(self, need: Need, priority: int, now: float) -> float:
        """The end of a pause, unless answers that are on their way may end it sooner. The pace may grow meanwhile."""
        may_end = self._refusals == 1 and self._in_flight > 1
        return AT_ONCE if may_end else self._resume_at

    def take(self, need: Need, now: float) -> None:
        self._in_flight += 1
        gap = _GAP if self._pace is None else max(_GAP, 3 / self._pace.rate)
        if now - self._last_sent > gap and now - self._resume_at > gap:
            self._since, self._count = now, 0.0
        elif now - self._since > _HORIZON:
            self._since, self._count = now - _HORIZON / 2, self._count / 2
        self._last_sent = now
        self._count += 1
        if self._pace is None:
            self._start.take(now)
        else:
            self._pace.take(1.0, now)

    def undo(self, need: Need) -> None:
        self._in_flight -= 1
        self._count = max(0.0, self._count - 1)
        if self._pace is None:
            self._start.undo()
        else:
            self._pace.give_back(1.0)

    def done(self, need: Need, used: int | None, now: float) -> None:
        self._in_flight -= 1

    def went_through(self, sent_at: float, now: float) -> None:
        """A request that was let go at `sent_at` was answered, and not with 429."""
        self._start.answered(now - sent_at)
        if sent_at <= self._episode_of:
            return
        self._answered += 1
        self._in_row += 1
        self._borne = min(_BORNE_AT_MOST, self._borne + self._bears)
        self._bears += (_BEARS - self._bears) * _FORGOTTEN
        if now < self._resume_at:
            if self._borne >= 1:
                self._end_the_pause(now)
        elif self._held and self._pace is not None:
            if self._doubled and self._answered + self._refused >= self._enough:
                self._stay_doubled()
                return
            self._held = False
            if self._refused and self._in_row < _RARE / self._bears:
                return
            known = max(self._evidence, min(self._answered - _FEW, _FEW)) + 1
            self._pace.rate *= 1 + max(1 / known**2, (self.growth if self._sure else _UNSURE_GROWTH) / known)

    def is_open(self, now: float) -> bool:
        """Whether calls need not be counted one by one: so many were answered, and none refused."""
        return self._pace is None and now >= self._resume_at and self._in_row >= _OPEN

    def passed(self, count: int, now: float) -> None:
        """So many requests were sent and answered of which nothing was said before.

        In a pause they say nothing against it: they were sent before it became known.
        """
        for _ in range(count):
            self.take(NOTHING, now)
            self._in_flight -= 1
            if now >= self._resume_at:
                self.went_through(now, now)

    def refused(self, sent_at: float, now: float, hint: float | None, backoff: float) -> bool:
        """A request was answered with 429; True if that begins a new pause.

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
        self._in_row = 0
        if sent_at > self._episode_at:
            self._refused += 1
        if self._borne >= 1:
            self._borne -= 1
            return False
        if now >= self._resume_at and sent_at > self._episode_at and self._is_unrelated():
            self._double()
            return False
        self._borne = max(self._borne - 1, -_BORNE_AT_MOST)
        self._refusals += 1
        if sent_at <= self._episode_at and (now < self._resume_at or not self._measured):
            self._resume_at = max(self._resume_at, now + (hint or 0.0))
            return False
        self._begin_a_pause(sent_at, now, hint, backoff)
        return True

    def _begin_a_pause(self, sent_at: float, now: float, hint: float | None, backoff: float) -> None:
        if not self._measured:
            self._measure()
        self._learn()
        soon = now - self._resume_at < max(self._pause, _GAP)
        if self._pace is not None and soon and self._answered <= self._refused:
            self._strikes += 1
            self._since, self._count = self._prior[0], self._prior[1] + self._count
        else:
            self._strikes = 0
        own = min(backoff * 2.0 ** min(self._strikes, 30), _LONGEST_PAUSE)
        self._pause = max(hint, own if self._strikes else 0.0) if hint else own
        self._episode_at, self._episode_of = now, sent_at
        self._resume_at = now + self._pause
        self._refusals, self._borne = 1, _CREDIT if self._pace is not None and self._answered else 0.0
        self._answered = self._refused = 0
        self._measured = False

    def _learn(self) -> None:
        """Find out whether what is refused at a pace has to do with the pace."""
        if self._doubled:
            self._doubled = False
            self._enough *= 2
        if self._pace is None or self._pace.rate > _SAME * self._found or not self._answered:
            self._tally = (0.0, 0.0)
            return
        answered, refused = self._tally[0] + self._answered, self._tally[1] + self._refused
        share = refused / max(1.0, answered + refused)
        if answered + refused >= _TELLING and share <= _MOST_BORNE:
            # As slow as what went through before, and refused all the same: bear that share, for as long as it lasts.
            self._bears = max(self._bears, _AMPLY * share / (1 - share))
            self._sure = False
        fresh = min(1.0, _REMEMBERED / max(1.0, answered + refused))
        self._tally = (answered * fresh, refused * fresh)

    def _is_unrelated(self) -> bool:
        """Whether refusals go on at a pace that went through before."""
        if self._pace is None or self._doubled or not self._measured or self._pace.rate > _SAME * self._found:
            return False
        calls = sum(self._tally) + self._answered + self._refused
        self._share = (self._tally[1] + self._refused) / max(1.0, calls)
        return calls >= self._enough and _LEAST_SHARE < self._share <= _MOST_BORNE

    def _double(self) -> None:
        """Let the pace show that a faster one is no worse."""
        assert self._pace is not None
        self._bears = max(self._bears, _AMPLY * self._share / (1 - self._share))
        self._borne = max(self._borne, _CREDIT_WHEN_FASTER)
        self._pace.rate *= _FASTER
        self._tally = (0.0, 0.0)
        self._answered = self._refused = 0
        self._doubled, self._sure = True, False

    def _stay_doubled(self) -> None:
        """The doubled pace went through as well as the one before, or the refusals would have begun a pause."""
        assert self._pace is not None
        self._found, self._enough = self._pace.rate, _ENOUGH
        self._double()

    def _end_the_pause(self, now: float) -> None:
        """It takes calls: go on as before, without a burst of those that waited."""
        self._resume_at = now
        self._measured = True
        self._strikes = 0
        if self._pace is None:
            self._start = ColdStart()
        else:
            self._pace.begin_at(now)

    def _measure(self) -> None:
        """The pause is over: pace from what went through until now."""
        span = max(self._resume_at - self._since, _SHORTEST_SPAN)
        let_through = max(self._count, 1.0)
        rate = _CAREFUL * let_through / span
        if self._pace is not None and not self._strikes:
            rate = max(rate, _EASED * self._pace.rate)
        self._sure = self._sure or (self._pace is not None and not self._strikes and rate < _AGREES * self._found)
        self._found = rate
        self._pace = Pacer(rate, unit=1.0)
        self._pace.begin_at(self._resume_at)
        self._evidence = self._count
        self._prior = (self._since, self._count)
        self._since, self._count = self._resume_at, 0.0
        self._held = False
        self._measured = True

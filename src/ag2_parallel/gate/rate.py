"""Spending a rate evenly: a reservation pacer, pure.

The generic cell rate algorithm (ITU-T I.371): one number, the time at which all that was taken so
far would have been spent at an even pace. Taking moves it forward by `cost / rate`; something may be
taken once the present is not further behind it than the tolerance. So in any window of `w` seconds
at most `rate * (w + TOLERANCE)` and the cost of one call are taken, from the first call on.

No existing limiter does this: of pyrate-limiter, aiolimiter, throttled-py and limits none books an
overdraft or a refund when the real usage differs from what was reserved, none takes from several
limits at once or from none, all but aiolimiter have no order of arrival, and those with a time limit
wait it out before they say no. The sliding windows among them let a whole window's worth go at once.
"""

from __future__ import annotations

from typing import Final

TOLERANCE: Final = 0.1
"""Seconds of the rate that may be taken at once: what a late timer missed is caught up, and no more."""

AT_ONCE: Final = float("-inf")
NOT_KNOWN: Final = float("inf")


class Pacer:
    """Something spent at `rate` units a second.

    Attributes:
        rate: Units a second; may be changed at any time.
    """

    __slots__ = ("_paid_until", "_unit", "rate")

    def __init__(self, rate: float, *, unit: float = 0.0) -> None:
        """`unit` is the least that can be taken: what costs no more has the whole tolerance."""
        self.rate = rate
        self._unit = unit
        self._paid_until = AT_ONCE

    def ready_at(self, cost: float) -> float:
        """When `cost` may be taken, at the earliest; `AT_ONCE` before anything was taken."""
        return self._paid_until - max(0.0, TOLERANCE - (cost - self._unit) / self.rate)

    def take(self, cost: float, now: float) -> None:
        """Take `cost`; more than is there is booked all the same, and what comes after waits for it."""
        self._paid_until = max(now, self._paid_until) + cost / self.rate

    def give_back(self, cost: float) -> None:
        """Undo a part of what was taken; a negative `cost` takes more, whatever there is."""
        self._paid_until -= cost / self.rate

    def begin_at(self, when: float) -> None:
        """Let the first unit go at `when`, and nothing be caught up before it."""
        self._paid_until = when + TOLERANCE

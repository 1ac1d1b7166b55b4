"""From what some tasks took to what many will take: quantiles by the bootstrap, times by simulating the workers.

Each replicate draws a sample from the sample, with replacement, and from that what each task that is left takes (B. Efron, "Bootstrap
Methods: Another Look at the Jackknife", 1979). The first draw stands for how little a small sample knows, the
second for chance. Small samples make such intervals too narrow, so their quantiles are taken further out, as T. C.
Hesterberg advises ("What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015).

A sample of one, or of few that took the same by chance, shows no spread, and the bootstrap takes that at its word. So
intervals are widened by what so few cannot show: one observation is taken to be off by a factor of two (a standard
deviation of the logarithm), and each further one to lessen that in proportion.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist, fmean, pstdev
from typing import TYPE_CHECKING, Final

from ag2_parallel.forecast import Interval

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

_TAIL: Final = 0.05
"""The probability on either side of an interval."""

_ONE_BY_ONE: Final = 2000
"""Tasks whose places are simulated one by one; those before them are taken to keep all workers busy."""

_MOST_DRAWS: Final = 400_000
_REPLICATES: Final = range(100, 401)

_FOR_THE_KNEE: Final = 20
"""Replicates that the number of workers is found with."""

_OFF: Final = math.log(2.0)
"""By how much the one task of a sample is off, as a standard deviation of the logarithm."""

_GOOD_ENOUGH: Final = 1.05
"""Within so much of the best time a number of workers is as good as any other."""

_MOST_WORKERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a task of the sample took.

    Attributes:
        seconds: From its start to its end, waiting left out.
        tokens: Of its model calls.
        cost: US dollars; None where a price is not known.
        loads: For each limit, the seconds for which the task alone uses all of it up.
    """

    seconds: float
    tokens: float = 0.0
    cost: float | None = 0.0
    loads: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the tasks that are left will take.

    Attributes:
        wall: Seconds.
        tokens: Of their model calls.
        cost: US dollars; None where a price is not known.
        knee: The fewest workers whose time is within 5 % of the best.
    """

    wall: Interval
    tokens: Interval
    cost: Interval | None
    knee: int


def makespan(seconds: Sequence[float], workers: int, busy: float = 0.0) -> float:
    """When the last of the tasks is done, each taken by the first worker that is free, in the order given.

    Args:
        seconds: What each task takes.
        workers: Tasks at once.
        busy: Seconds for which all workers have other work first.
    """
    if not seconds:
        return busy
    workers = min(workers, len(seconds))
    free = [busy] * workers
    last = busy
    for each in seconds:
        done = free[0] + each
        heapq.heapreplace(free, done)
        last = max(last, done)
    return last


class _Replicate:
    """One way in which the tasks that are left may turn out."""

    def __init__(self, sample: Sequence[Sampled], left: int, depth: int, rng: random.Random) -> None:
        chosen = rng.choices(sample, k=len(sample))
        self._drawn = rng.choices(chosen, k=min(left, _ONE_BY_ONE))
        self._before = left - len(self._drawn)
        self._chosen = chosen
        self._luck = rng.gauss(0.0, 1.0)
        self._chain = sum(task.seconds for task in rng.choices(chosen, k=depth)) if left else 0.0

    def total(self, of: Callable[[Sampled], float]) -> float:
        """The sum over all tasks; over those that are not drawn one by one, by the central limit theorem."""
        total = math.fsum(map(of, self._drawn))
        if self._before:
            values = [of(task) for task in self._chosen]
            total += max(0.0, self._before * fmean(values) + math.sqrt(self._before) * pstdev(values) * self._luck)
        return total

    @cached_property
    def _seconds(self) -> list[float]:
        return [task.seconds for task in self._drawn]

    @cached_property
    def _work_before(self) -> float:
        return max(0.0, self.total(lambda task: task.seconds) - math.fsum(self._seconds)) if self._before else 0.0

    @cached_property
    def limits(self) -> float:
        """Seconds that the limits take at least."""
        return max((self._load(at) for at in range(len(self._chosen[0].loads))), default=0.0)

    @cached_property
    def _bound(self) -> float:
        """Seconds that no number of workers beats: the limits, and a chain of tasks that wait for each other."""
        return max(self._chain, self.limits)

    def _load(self, limit: int) -> float:
        return self.total(lambda task: task.loads[limit])

    def wall(self, workers: int) -> float:
        """Seconds with so many workers."""
        return max(self._bound, makespan(self._seconds, workers, self._work_before / workers))


def outlook(sample: Sequence[Sampled], left: int, workers: int, rng: random.Random, *, depth: int = 1) -> Outlook:
    """What `left` more tasks take.

    Args:
        sample: At least one task that ran.
        left: How many tasks there are beside the sample.
        workers: Tasks at once.
        rng: Draws; seeded, it gives the same every time.
        depth: Tasks in the longest chain of those that wait for each other.
    """
    count = min(max(_MOST_DRAWS // max(1, left), _REPLICATES.start), _REPLICATES.stop - 1)
    replicates = [_Replicate(sample, left, depth, rng) for _ in range(count)]
    tail = expanded_tail(len(sample))
    unpriced = any(task.cost is None for task in sample)

    def interval(values: Iterable[float]) -> Interval:
        return _widened(_interval(list(values), tail), unseen(len(sample)))

    wall = interval(each.wall(workers) for each in replicates)
    least = _quantile(sorted(each.limits for each in replicates), tail)  # limits are no guess
    return Outlook(
        wall=replace(wall, low=max(wall.low, least)),
        tokens=interval(each.total(lambda task: task.tokens) for each in replicates),
        cost=None if unpriced else interval(each.total(lambda task: task.cost or 0.0) for each in replicates),
        knee=_knee(replicates[:_FOR_THE_KNEE], left),
    )


def _knee(replicates: Sequence[_Replicate], left: int) -> int:
    """The fewest workers within 5 % of the best, found by bisection: more workers never take longer."""
    low, high = 1, max(1, min(left, _MOST_WORKERS))
    enough = _GOOD_ENOUGH * _mean_wall(replicates, high)
    while low < high:
        middle = (low + high) // 2
        if _mean_wall(replicates, middle) <= enough:
            high = middle
        else:
            low = middle + 1
    return low


def _mean_wall(replicates: Sequence[_Replicate], workers: int) -> float:
    return fmean(each.wall(workers) for each in replicates)


def expanded_tail(count: int) -> float:
    """The probability at which a quantile is taken, so that a sample of `count` covers what it says."""
    if count < 2:
        return 0.0
    return NormalDist().cdf(math.sqrt(count / (count - 1)) * _students_t(count - 1))


def _students_t(freedom: int) -> float:
    """The 5 % quantile of Student's t, by the Cornish-Fisher expansion (Abramowitz and Stegun, 26.7.5)."""
    z = NormalDist().inv_cdf(_TAIL)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def unseen(count: int) -> float:
    """The 95 % quantile, as a logarithm, of how far a sample of `count` may be off beside the spread that it shows."""
    return -NormalDist().inv_cdf(_TAIL) * _OFF / count


def _widened(interval: Interval, unseen: float) -> Interval:
    """Wider on both sides, on the scale of logarithms, where independent errors add up as squares."""
    low, expected, high = interval.low, interval.expected, interval.high
    if expected <= 0:
        return interval
    below = math.hypot(math.log(expected / low), unseen) if low > 0 else math.inf
    above = math.hypot(math.log(high / expected), unseen)
    return Interval(expected * math.exp(-below), expected, expected * math.exp(above))


def _interval(values: Sequence[float], tail: float) -> Interval:
    ordered = sorted(values)
    return Interval(_quantile(ordered, tail), fmean(ordered), _quantile(ordered, 1 - tail))


def _quantile(ordered: Sequence[float], probability: float) -> float:
    at = probability * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])

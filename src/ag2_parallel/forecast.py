"""What a run is expected to take, from a sample of its tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.results import ParallelTaskResult


@dataclass(frozen=True, slots=True)
class Interval:
    """A number that is not known yet, and where it is with a probability of nine in ten.

    Attributes:
        low: One in twenty that it is below.
        expected: The mean.
        high: One in twenty that it is above.
    """

    low: float
    expected: float
    high: float

    def plus(self, known: float) -> Interval:
        """The same with a known part added."""
        return Interval(self.low + known, self.expected + known, self.high + known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the whole run is expected to take, the sample counted in.

    Attributes:
        tasks: How many tasks it is about.
        whole: Whether these are all; False where a source goes on past what was read of it.
        sampled: How many tasks of the sample ran.
        failed: How many of these did not succeed.
        workers: Tasks at once.
        wall: Seconds from the start of the sample to the end of the run, time between the two left out.
        wall_left: Seconds that the tasks take which are not in the sample.
        tokens: Tokens of all model calls.
        cost: US dollars; None where the price of a model is not known.
        unpriced: The models whose price is not known.
        knee: The fewest workers whose time is within 5 % of the best that any number of workers gives.
        results: The sample's results by name. `runner.run(tasks, known=forecast.results)` does not run them again.
    """

    tasks: int
    whole: bool
    sampled: int
    failed: int
    workers: int
    wall: Interval
    wall_left: Interval
    tokens: Interval
    cost: Interval | None
    unpriced: tuple[str, ...] = ()
    knee: int
    results: Mapping[str, ParallelTaskResult] = field(default_factory=dict, repr=False)

    @property
    def left(self) -> int:
        """How many of the tasks are not in the sample."""
        return self.tasks - len(self.results)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the results."""
        shown = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "results"}
        intervals = {name: _plain(value) for name, value in shown.items() if isinstance(value, Interval)}
        return shown | intervals | {"unpriced": list(self.unpriced), "left": self.left}

    def __str__(self) -> str:
        """For people, in a few lines."""
        tasks = "1 task" if self.tasks == 1 else f"{self.tasks:,} tasks"
        many = tasks if self.whole else f"the first {self.tasks:,} tasks, with more to come"
        failed = f", {self.failed} of which failed" if self.failed else ""
        lines = [f"forecast for {many}, {self.workers} at once, from a sample of {self.sampled}{failed}"]
        lines.append(f"  time    {_said(self.wall, duration)}; {_said(self.wall_left, duration)} of it still to come")
        lines.append(f"  tokens  {_said(self.tokens, lambda tokens: f'{tokens:,.0f}')}")
        if self.cost is None:
            lines.append(f"  cost    not known: there is no price for {', '.join(self.unpriced) or 'a model'}")
        else:
            lines.append(f"  cost    {_said(self.cost, dollars)}")
        lines.append(f"  workers past {self.knee:,} the time improves by less than 5 %")
        return "\n".join(lines)


def _plain(interval: Interval) -> dict[str, float]:
    return {item.name: getattr(interval, item.name) for item in fields(Interval)}


def _said(interval: Interval, form: Any) -> str:
    return f"{form(interval.expected)} ({form(interval.low)} to {form(interval.high)})"


def dollars(amount: float) -> str:
    """An amount of US dollars for people."""
    return f"${amount:,.2f}" if amount >= 10 or amount == 0 else f"${amount:.3g}"


def duration(seconds: float) -> str:
    """Seconds for people: `4.2 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min"

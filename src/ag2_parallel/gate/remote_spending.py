"""The account of a task whose run is kept in another process; without a budget, nothing is ever used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.gate.budget import Refusal, TaskSpending, unpriced

if TYPE_CHECKING:
    from collections.abc import Callable


class RemoteSpending:
    """What a child knows of the budget of a run: what it is told. Charges go out in order before all that follows.

    Attributes:
        limits_cost: Whether the budget limits costs.
        used_up: What is used up: by a task's index, or None for the run; in words.
    """

    def __init__(
        self, *, limits_cost: bool, charge: Callable[[int, int, float], None], refused: Callable[[], None]
    ) -> None:
        """`charge` is told a task's index, tokens and US dollars; `refused` that the run's budget refused a call."""
        self.limits_cost = limits_cost
        self.used_up: dict[int | None, str] = {}
        self.charge = charge
        self.refused = refused

    def of(self, index: int) -> TaskSpending:
        """The account of a task."""
        return _RemoteTask(self, index)


class _RemoteTask(TaskSpending):
    def __init__(self, run: RemoteSpending, index: int) -> None:  # what it counts is counted elsewhere
        self.limits_cost = run.limits_cost
        self._remote = run
        self._index = index

    def add(self, tokens: int, cost: float) -> None:
        self._remote.charge(self._index, tokens, cost)

    def refusal(self, model: str | None, *, priced: Callable[[], bool]) -> Refusal | None:
        used_up = self._remote.used_up
        if None in used_up:
            self._remote.refused()
            return Refusal("budget", used_up[None])
        if self._index in used_up:
            return Refusal("budget", used_up[self._index])
        if self.limits_cost and not priced():
            return Refusal("configuration", unpriced(model))
        return None

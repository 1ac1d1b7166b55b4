"""What a run and its tasks have used, and the refusal of a model call past their budget.

Calls are counted on the engine loop, as their answers come; a call is judged before each of its
tries. So a limit is overshot by at most what was in flight when the answers reached it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from ag2_parallel.gate.prices import PriceTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ag2_parallel.policies import Budget


class NamedModel(NamedTuple):
    """A model that a configuration names."""

    model: str
    endpoint: str
    priced: bool


@dataclass(slots=True)
class Spent:
    """Tokens and US dollars."""

    tokens: int = 0
    cost: float = 0.0

    def add(self, tokens: int, cost: float) -> None:
        """So much more."""
        self.tokens += tokens
        self.cost += cost


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is refused: the kind of its task's error, and the words."""

    kind: str
    message: str


def reached(spent: Spent, *, tokens: tuple[str, int | None], cost: tuple[str, float | None], whose: str) -> str | None:
    """The limit that was reached, in words, or None; limits come with their names."""
    name, most = tokens
    if most is not None and spent.tokens >= most:
        return f"{whose} has used {spent.tokens:,} tokens, and its budget is {name}={most}"
    name, dollars = cost
    if dollars is not None and spent.cost >= dollars:
        return f"{whose} has cost ${spent.cost:.6g}, and its budget is {name}={dollars:g}"
    return None


def unpriced(model: str | None) -> str:
    """What to do about a model without a known price."""
    extra = "" if find_spec("genai_prices") else ', or pip install "ag2-parallel[prices]"'
    named = "a model that the request does not name" if model is None else f'model "{model}"'
    return (
        f"the price of {named} is not known, and the budget limits costs; give its configuration entry a "
        f"price=[for 1,000 prompt tokens, for 1,000 completion tokens] in US dollars{extra}"
    )


class Spending:
    """The account of a run, and those of its tasks."""

    def __init__(self, budget: Budget, *, on_reached: Callable[[str], None], on_refused: Callable[[str], None]) -> None:
        """Count against `budget`.

        Args:
            budget: The limits.
            on_reached: Told on the loop, in words, when the run's budget is used up.
            on_refused: Told from any thread, in words, when a call was refused for it.
        """
        self.budget = budget
        self._prices = PriceTable()
        self._run = Spent()
        self._tasks: dict[int, TaskSpending] = {}
        self._on_reached = on_reached
        self.on_refused = on_refused
        self._told = False

    def of(self, index: int) -> TaskSpending:
        """The account of a task, the same for all its attempts; on the loop."""
        return self._tasks.setdefault(index, TaskSpending(self))

    def forget(self, index: int) -> None:
        """A task is settled; what its abandoned attempts still use counts for the run alone."""
        self._tasks.pop(index, None)

    def load_prices(self) -> None:
        """Load the table of prices, if costs are limited; blocking, once a process."""
        if self.budget.limits_cost:
            self._prices("gpt-4o-mini", "https://api.openai.com")

    def problems(self, models: Iterable[NamedModel]) -> list[str]:
        """Models whose price would have to be known and is not; may load the table of prices."""
        if not self.budget.limits_cost:
            return []
        unknown = dict.fromkeys(m.model for m in models if not m.priced and not self._prices(m.model, m.endpoint))
        return [unpriced(model) for model in unknown]

    def add(self, tokens: int, cost: float) -> None:
        """The run used so much more."""
        self._run.add(tokens, cost)
        if not self._told and (why := self.run_reached()) is not None:
            self._told = True
            self._on_reached(why)

    def run_reached(self) -> str | None:
        """The run's limit that was reached, or None."""
        budget = self.budget
        return reached(
            self._run, tokens=("max_tokens", budget.max_tokens), cost=("max_cost", budget.max_cost), whose="the run"
        )


class TaskSpending:
    """The account of one task."""

    def __init__(self, run: Spending) -> None:
        self._run = run
        self._spent = Spent()
        self.limits_cost = run.budget.limits_cost

    def add(self, tokens: int, cost: float) -> None:
        """A call used so much more; on the loop."""
        self._spent.add(tokens, cost)
        self._run.add(tokens, cost)

    def refusal(self, model: str | None, *, priced: Callable[[], bool]) -> Refusal | None:
        """Why a call may not be sent, or None; safe from any thread.

        Args:
            model: The model that is asked for.
            priced: Whether its price is known; asked only where costs are limited.
        """
        if (why := self._run.run_reached()) is not None:
            self._run.on_refused(why)
        why = why or self.used_up()
        if why is not None:
            return Refusal("budget", why)
        if self.limits_cost and not priced():
            return Refusal("configuration", unpriced(model))
        return None

    def used_up(self) -> str | None:
        """The limit of the run or of the task that was reached, or None; nobody is told of it."""
        budget = self._run.budget
        tokens, cost = ("max_task_tokens", budget.max_task_tokens), ("max_task_cost", budget.max_task_cost)
        return self._run.run_reached() or reached(self._spent, tokens=tokens, cost=cost, whose="the task")

"""Counting what an attempt's calls used, from the answers themselves."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ag2_parallel.gate.budget import TaskSpending
    from ag2_parallel.gate.prices import Price, Pricing

UNNAMED_MODEL: Final = "unknown"
"""Where the usage of requests is filed that name no model."""

BYTES_PER_TOKEN: Final = 4
"""The usual rule of thumb for English text."""


@dataclass(slots=True)
class CallTally:
    """The numbers of one call, its retries included; written on the engine loop, read anywhere.

    Attributes:
        model: The model that the request names.
        pricing: What its tokens cost; asked only when the usage is read, because a price table may still be loading.
        endpoint: Where the call goes.
        spending: The task's account, where there is a budget.
    """

    model: str | None
    pricing: Pricing
    endpoint: str = ""
    spending: TaskSpending | None = None
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    answered: int = 0
    retried: int = 0
    replayed: int = 0
    unreported: int = 0
    estimated: int = 0
    _charged: tuple[int, float] = (0, 0.0)

    def answer(self, block: Mapping[str, Any] | None, estimate: Callable[[], int]) -> None:
        """The call was answered; without a usage block its tokens are estimated."""
        self.answered += 1
        if block is None:
            self.unreport(estimate())
            return
        self.prompt += _count(block, "prompt_tokens", "input_tokens")
        from_cache = _count(block, "cache_read_input_tokens")  # Anthropic counts these apart from its input tokens
        self.prompt += from_cache + _count(block, "cache_creation_input_tokens")
        self.cached += from_cache
        self.completion += _count(block, "completion_tokens", "output_tokens")
        details = block.get("prompt_tokens_details") or block.get("input_tokens_details")
        if isinstance(details, dict):
            self.cached += _count(details, "cached_tokens")
        self._charge()

    def unreport(self, estimate: int) -> None:
        """A request was sent and came to its end without a usage block."""
        self.unreported += 1
        self.estimated += estimate
        self._charge()

    def _charge(self) -> None:
        """Charge the account with what was not charged yet."""
        if self.spending is None:
            return
        tokens = self.prompt + self.completion + self.estimated
        cost = (self.cost() or 0.0) if self.spending.limits_cost else 0.0
        before, self._charged = self._charged, (tokens, cost)
        self.spending.add(tokens - before[0], cost - before[1])

    def price(self) -> Price | None:
        """What its tokens cost; None where that is unknown."""
        return self.pricing(self.model, self.endpoint)

    def cost(self) -> float | None:
        """US dollars for the reported tokens; None where the price of the model is unknown."""
        if not self.answered and not self.unreported:
            return 0.0  # refused, or never sent: nothing to pay for
        price = self.price()
        return None if price is None else price(self.prompt, self.cached, self.completion)


class Meter:
    """The tallies of an attempt's calls, charged to its task's account where there is one."""

    def __init__(self, spending: TaskSpending | None = None) -> None:
        self._spending = spending
        self._tallies: list[CallTally] = []

    def open(self, model: str | None, pricing: Pricing, endpoint: str = "") -> CallTally:
        """A tally for one more call."""
        tally = CallTally(model, pricing, endpoint, self._spending)
        self._tallies.append(tally)
        return tally

    @property
    def calls(self) -> int:
        """Tallies opened so far."""
        return len(self._tallies)

    def usage(self) -> Usage:
        """Everything so far, also filed by model; safe from any thread."""
        return usage_of(self._tallies[:])


def usage_of(tallies: Iterable[CallTally]) -> Usage:
    """Tallies as a `Usage`."""
    by_model: dict[str, list[CallTally]] = {}
    for tally in tallies:
        by_model.setdefault(tally.model or UNNAMED_MODEL, []).append(tally)
    return Usage.total(_sum(group).for_model(model) for model, group in by_model.items())


def _sum(tallies: list[CallTally]) -> Usage:
    costs = [tally.cost() for tally in tallies]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        prompt_tokens=sum(tally.prompt for tally in tallies),
        completion_tokens=sum(tally.completion for tally in tallies),
        cached_tokens=sum(tally.cached for tally in tallies),
        calls=sum(tally.answered for tally in tallies),
        retried_calls=sum(tally.retried for tally in tallies),
        replayed_calls=sum(tally.replayed for tally in tallies),
        unreported_calls=sum(tally.unreported for tally in tallies),
        estimated_tokens=sum(tally.estimated for tally in tallies),
        cost=sum(known) if len(known) == len(costs) else None,
    )


def _count(block: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = block.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf:
            return int(value)
    return 0

"""What model calls used and cost: values that can be added up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, calls and cost of a call, a task, a group or a run.

    Answered calls are exact: the numbers are those of the provider's own usage block. Calls that
    were cut or broke before that block arrived are counted in `unreported_calls`, with an
    estimate of their tokens kept apart. Calls answered from a recording count in `replayed_calls` and
    nowhere else: their tokens and their cost are those of the life of the run that paid for them.

    Attributes:
        prompt_tokens: Tokens sent, as the provider counted them.
        completion_tokens: Tokens generated, as the provider counted them.
        cached_tokens: Those of `prompt_tokens` that the provider served from its cache.
        calls: Model calls that were answered.
        retried_calls: Requests sent again after a failure.
        replayed_calls: Calls answered from a recording, without a request.
        unreported_calls: Calls that were sent and ended without a usage block.
        estimated_tokens: An estimate of the tokens of the unreported calls.
        cost: Price in US dollars; None where the price of any of the calls is unknown, never 0.
        by_model: The same numbers for each model by name, without `by_model` of their own.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    calls: int = 0
    retried_calls: int = 0
    replayed_calls: int = 0
    unreported_calls: int = 0
    estimated_tokens: int = 0
    cost: float | None = 0.0
    by_model: dict[str, Usage] = field(default_factory=dict)

    @property
    def total_tokens(self) -> int:
        """Tokens sent and generated."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """The two together; the cost is unknown where one of them is."""
        by_model = dict(self.by_model)
        for model, usage in other.by_model.items():
            by_model[model] = by_model[model] + usage if model in by_model else usage
        return Usage(
            **{name: getattr(self, name) + getattr(other, name) for name in _COUNTS},
            cost=None if self.cost is None or other.cost is None else self.cost + other.cost,
            by_model=by_model,
        )

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """All of them together."""
        all_of_them = list(usages)
        return all_of_them[0] if len(all_of_them) == 1 else sum(all_of_them, cls())

    def for_model(self, model: str) -> Usage:
        """The same usage, filed under `model`."""
        own = replace(self, by_model={}) if self.by_model else self
        return replace(self, by_model={model: own})

    def to_dict(self, mask: Callable[[str], str] = str) -> dict[str, Any]:
        """Plain data, `total_tokens` included; `mask` hides the secrets of a text."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in _COUNTS}
        plain |= {"total_tokens": self.total_tokens, "cost": self.cost}
        if self.by_model:
            plain["by_model"] = {mask(model): usage.to_dict(mask) for model, usage in self.by_model.items()}
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Usage:
        """The usage that `to_dict` described."""
        counts = {name: plain[name] for name in _COUNTS if name in plain}
        by_model = {model: cls.from_dict(usage) for model, usage in plain.get("by_model", {}).items()}
        return cls(**counts, cost=plain.get("cost"), by_model=by_model)


_COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "calls",
    "retried_calls",
    "replayed_calls",
    "unreported_calls",
    "estimated_tokens",
)

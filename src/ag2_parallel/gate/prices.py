"""What tokens cost, from the optional package genai-prices.

Its table takes a third of a second to load, so it is loaded on a thread of its own as soon as an
attempt needs prices, while the first calls are on their way.
"""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    Price: TypeAlias = Callable[[int, int, int], float]
    """US dollars for prompt tokens, those of them from the provider's cache, and completion tokens of one call."""

    Pricing: TypeAlias = Callable[[str | None, str], Price | None]
    """The price of the tokens of a model at an endpoint, or None where it is unknown."""


def fixed_price(per_1000: tuple[float, float]) -> Price:
    """The price that a configuration entry names: for 1,000 prompt and 1,000 completion tokens."""
    prompt_price, completion_price = per_1000

    def price(prompt: int, _cached: int, completion: int) -> float:
        return (prompt * prompt_price + completion * completion_price) / 1000

    return price


class PriceTable:
    """Prices by model and endpoint; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loading = False
        self._found: dict[tuple[str, str], Price | None] = {}

    def load(self, spawn: Callable[[Callable[[], None]], None]) -> None:
        """Load the table on a thread, once; returns at once."""
        if not self._loading:
            self._loading = True
            spawn(_load)

    def __call__(self, model: str | None, endpoint: str) -> Price | None:
        """The price of a model's tokens, or None where it is unknown.

        The endpoint's own provider counts first. A server that the table does not know (a proxy, a
        gateway) is taken to charge what the model's maker charges.
        """
        if not model:
            return None
        key = (model, endpoint)
        with self._lock:
            if key not in self._found:
                self._found[key] = _look_up(model, endpoint)
            return self._found[key]


def _load() -> None:
    _look_up("gpt-4o-mini", "https://api.openai.com")


def _look_up(model: str, endpoint: str) -> Price | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    nothing = Usage(input_tokens=0, output_tokens=0)
    for where in ({"provider_api_url": endpoint}, {}):
        try:
            found = calc_price(nothing, model, **where)
        except LookupError:
            continue
        except ValueError:  # the table prices something else than tokens
            return None
        return _flat(found.model_price) or _by_rule(found.model_price)
    return None


def _flat(model_price: Any) -> Price | None:
    """The price as three rates, where it has no tiers and no unit besides text tokens that applies."""
    rates = [getattr(model_price, name, None) for name in ("input_mtok", "cache_read_mtok", "output_mtok")]
    prompt_rate, cached_rate, completion_rate = rates
    if not isinstance(prompt_rate, Decimal) or not isinstance(completion_rate, Decimal):
        return None
    if cached_rate is None:
        cached_rate = prompt_rate
    if not isinstance(cached_rate, Decimal):
        return None
    fresh, again, made = (float(rate) / 1e6 for rate in (prompt_rate, cached_rate, completion_rate))

    def price(prompt: int, cached: int, completion: int) -> float:
        return (prompt - cached) * fresh + cached * again + completion * made

    return price


def _by_rule(model_price: Any) -> Price:
    from genai_prices import Usage

    def price(prompt: int, cached: int, completion: int) -> float:
        usage = Usage(input_tokens=prompt, cache_read_tokens=cached, output_tokens=completion)
        return float(model_price.calc_price(usage)["total_price"])

    return price

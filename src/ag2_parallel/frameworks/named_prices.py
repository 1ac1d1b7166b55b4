"""The price that a model configuration names."""

from __future__ import annotations

import math
from typing import Any


def named_price(price: Any) -> tuple[float, float] | None:
    """US dollars for 1,000 prompt and 1,000 completion tokens, from one number or a pair; None for what is no price."""
    pair = price if isinstance(price, list | tuple) else (price, price)
    if len(pair) != 2 or not all(isinstance(each, int | float) and 0 <= each < math.inf for each in pair):
        return None
    return float(pair[0]), float(pair[1])

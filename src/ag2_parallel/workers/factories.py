"""What a factory wants to be called with."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def takes_argument(function: Callable[..., Any]) -> bool:
    """Whether a factory wants the `TaskContext`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        (p.default is p.empty and p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}) or p.kind is p.VAR_POSITIONAL
        for p in parameters
    )

"""A guess at the tokens of an answer before there is one: the average of those before; pure."""

from __future__ import annotations

from typing import Final

_UNKNOWN: Final = 256
"""Tokens of a model's first answer, where the request does not cap it."""

_WEIGHT: Final = 0.1


class AnswerLengths:
    """Running averages of the tokens of answers, by endpoint and model."""

    def __init__(self) -> None:
        self._averages: dict[tuple[str, str | None], float] = {}

    def guess(self, endpoint: str, model: str | None, cap: int | None) -> int:
        """The tokens to reserve for an answer of at most `cap` tokens; None: no cap."""
        average = self._averages.get((endpoint, model))
        if average is None:
            return _UNKNOWN if cap is None else cap
        return round(average) if cap is None else min(cap, round(average))

    def learn(self, endpoint: str, model: str | None, tokens: int) -> None:
        """An answer had so many tokens."""
        key = (endpoint, model)
        before = self._averages.get(key)
        self._averages[key] = tokens if before is None else before + _WEIGHT * (tokens - before)

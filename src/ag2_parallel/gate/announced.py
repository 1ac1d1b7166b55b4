"""Limits that a provider announces in the headers of its answers; pure.

Read are `x-ratelimit-limit-requests`, `-remaining-` and `-reset-`, the same for tokens (OpenAI, Azure, Groq and
most servers that speak their protocol), and the `anthropic-ratelimit-` ones. A limit is taken to be for a minute,
as all of them count; where nothing remains, calls wait for the reset that is named. Until the first answer
nothing is known, so one call goes ahead of the others.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ag2_parallel.gate.limits import NOTHING, Limit, Need, RequestLimit, TokenLimit
from ag2_parallel.gate.rate import AT_ONCE, NOT_KNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

_PER: Final = 60.0
_LONGEST_RESET: Final = 86_400.0
_FORMS: Final = (
    "x-ratelimit-{field}-{what}",
    "anthropic-ratelimit-{what}-{field}",
)
_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+\.?\d*|\.\d+)s)?(?:(\d+\.?\d*|\.\d+)ms)?")


class Announced(Limit):
    """What one key may ask of one model at one endpoint, once it is known."""

    __slots__ = ("_in_flight", "_known", "_need", "_until", "requests", "tokens")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.requests: RequestLimit | None = None
        self.tokens: TokenLimit | None = None
        self._known = False
        self._in_flight = 0
        self._need = Need()
        self._until = AT_ONCE

    def ready_at(self, need: Need, now: float) -> float:
        if not self._known:
            return NOT_KNOWN if self._in_flight else AT_ONCE
        return max([self._until, *(limit.ready_at(need, now) for limit in self._limits())])

    def not_before(self, need: Need, priority: int, now: float) -> float:
        return self._until

    def earliest(self, need: Need) -> float:
        return max([self._until, *(limit.earliest(need) for limit in self._limits())])

    def take(self, need: Need, now: float) -> None:
        self._count(need, 1)
        for limit in self._limits():
            limit.take(need, now)

    def undo(self, need: Need) -> None:
        self._count(need, -1)
        for limit in self._limits():
            limit.undo(need)

    def done(self, need: Need, used: int | None, now: float) -> None:
        self._count(need, -1)
        for limit in self._limits():
            limit.done(need, used, now)

    def heard(self, headers: Mapping[str, str], now: float, today: datetime) -> None:
        """An answer came; `headers` by their names in lower case, `today` the aware wall time."""
        self._known = True
        found = {what: _number(headers, what, "limit") for what in ("requests", "tokens")}
        if (limit := found["requests"]) is not None:
            if self.requests is None:
                self.requests = RequestLimit(self.name, limit / _PER)
                for _ in range(self._in_flight):  # those that found out
                    self.requests.take(NOTHING, now)
            self.requests.pacer.rate = limit / _PER
        if (limit := found["tokens"]) is not None:
            if self.tokens is None:
                self.tokens = TokenLimit(self.name, limit / _PER)
                self.tokens.take(self._need, now)  # each call gives back what it did not use
            self.tokens.pacer.rate = limit / _PER
        for what in found:
            if _number(headers, what, "remaining", least=0.0) == 0:
                self._until = max(self._until, now + _reset(headers, what, today))

    def _count(self, need: Need, sign: int) -> None:
        """A call goes (1) or has ended (-1)."""
        self._in_flight += sign
        self._need = Need(self._need.tokens + sign * need.tokens, self._need.sure + sign * need.sure)

    def _limits(self) -> list[Limit]:
        return [limit for limit in (self.requests, self.tokens) if limit is not None]


def _value(headers: Mapping[str, str], what: str, field: str) -> str | None:
    return next((v for form in _FORMS if (v := headers.get(form.format(what=what, field=field))) is not None), None)


def _number(headers: Mapping[str, str], what: str, field: str, least: float = 1.0) -> float | None:
    try:
        number = float(_value(headers, what, field) or "")
    except ValueError:
        return None
    return number if least <= number < 1e12 else None


def _reset(headers: Mapping[str, str], what: str, today: datetime) -> float:
    """Seconds until a limit is whole again; 0 where that cannot be read."""
    text = (_value(headers, what, "reset") or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        found = _DURATION.fullmatch(text)
        if found is not None and text:
            days, hours, minutes, secs, millis = (float(part or 0) for part in found.groups())
            seconds = days * 86_400 + hours * 3600 + minutes * 60 + secs + millis / 1000
        else:
            seconds = _until(text, today)
    return min(max(seconds, 0.0), _LONGEST_RESET) if seconds == seconds else 0.0  # noqa: PLR0124 - NaN


def _until(moment: str, today: datetime) -> float:
    try:
        return (datetime.fromisoformat(moment) - today).total_seconds()
    except (ValueError, TypeError):
        return 0.0

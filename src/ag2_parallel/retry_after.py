"""How long a model server asks to wait: every form of Retry-After that providers send; pure.

A moment is compared with the answer's own `Date` where it has one, so that it does not matter whether the two clocks agree.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_HINT: Final = 7 * 86_400.0
"""Hints are cut to one week: a longer one is a mistake, or as good as a week."""


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the server asks to wait, from 0 to `LONGEST_HINT`, or None where it says nothing sensible.

    Args:
        headers: The answer's headers, names in lower case.
        now: The wall time, aware, that a moment is compared with where the answer has no date.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _sane(milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value is not None and (moment := _moment(value)) is not None:
        seconds = (moment - (_moment(headers.get("date", "")) or now)).total_seconds()
    return None if seconds is None else _sane(seconds)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(date: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(date)
        # "-0000": a date that names no zone is meant in UTC
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def _sane(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_HINT)

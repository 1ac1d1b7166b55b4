"""How long a model server asks to wait: every form of Retry-After that providers send."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_HINT: Final = 86_400.0
"""Hints are cut to one day: a longer one is a mistake, or as good as a day."""


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the server asks to wait, from 0 to `LONGEST_HINT`, or None where it says nothing sensible.

    Args:
        headers: The answer's headers, names in lower case.
        now: The wall time, aware, that a date is compared with.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _sane(milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value is not None:
        seconds = _until(value, now)
    return None if seconds is None else _sane(seconds)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:  # "-0000": a date that names no zone is meant in UTC
            moment = moment.replace(tzinfo=UTC)
        return (moment - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None


def _sane(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_HINT)

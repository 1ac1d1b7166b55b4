"""The knobs of a run that are values of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ag2_parallel.results import TaskError

HandleErrors: TypeAlias = Literal["collect", "fail_fast", "ignore"]
Console: TypeAlias = Literal["quiet", "prefix", "grouped"]

MAX_SECONDS: Final = 31_536_000.0
"""The longest time limit, one year: past it a number is a mistake (milliseconds, say)."""

MAX_WORKERS: Final = 10_000
"""The most tasks at once: past it the threads alone cost more memory than most machines have."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often something is tried, and how long to wait in between.

    The wait before attempt n + 1 is `initial * factor ** (n - 1)` seconds, at most `maximum`. With
    jitter it is drawn evenly between nothing and that ("full jitter", Marc Brooker, AWS
    Architecture Blog, "Exponential Backoff And Jitter", 2015).

    Attributes:
        max_attempts: Tries in all, the first included; 1 means no retry.
        initial: Seconds before the second try.
        factor: How much longer each wait is than the one before.
        maximum: The longest wait in seconds.
        jitter: Whether waits are drawn at random below their value.
        on: Which failures are tried again: kinds of `TaskError` or a function of it. None: those
            that can go away by themselves.
    """

    max_attempts: int
    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: bool = True
    on: Iterable[str] | Callable[[TaskError], bool] | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        problems = []
        if not _is_int(self.max_attempts) or not 1 <= self.max_attempts <= 1000:
            problems.append(f"RetryPolicy max_attempts: {self.max_attempts!r} is not a whole number from 1 to 1000")
        problems += [
            f"RetryPolicy {name}: {value!r} is not a number of seconds from 0 to {MAX_SECONDS:.0f}"
            for name in ("initial", "maximum")
            if not is_number(value := getattr(self, name)) or not 0 <= value <= MAX_SECONDS
        ]
        if not is_number(self.factor) or not 1 <= self.factor <= 100:
            problems.append(f"RetryPolicy factor: {self.factor!r} is not a number from 1 to 100")
        if isinstance(self.on, str):
            problems.append(f'RetryPolicy on: pass a list of kinds, ["{self.on}"], not a string')
        elif self.on is not None and not callable(self.on):
            object.__setattr__(self, "on", frozenset(self.on))
        if problems:
            raise ConfigurationError(problems)


def is_number(value: object) -> bool:
    """Whether `value` is a finite number; a bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def seconds_problem(value: object) -> str | None:
    """What is wrong with a time limit, or None; None as a value means no limit."""
    if value is None or (is_number(value) and 0 < value <= MAX_SECONDS):  # type: ignore[operator]
        return None
    return f"{value!r} is not a number of seconds above 0 and at most {MAX_SECONDS:.0f}; use None for no limit"


def retry_problem(value: object) -> str | None:
    """What is wrong with a number of attempts or a policy, or None."""
    if isinstance(value, RetryPolicy) or (_is_int(value) and 1 <= value <= 1000):  # type: ignore[operator]
        return None
    return f"{value!r} is neither a whole number of attempts from 1 to 1000 nor a RetryPolicy"


def as_retry_policy(value: int | RetryPolicy) -> RetryPolicy:
    """A number of attempts as a policy with the default waits."""
    return value if isinstance(value, RetryPolicy) else RetryPolicy(value)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

"""The knobs of a run that are values of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ag2_parallel.error_kinds import ERROR_KINDS
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

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
            problems += self._kind_problems()
        if problems:
            raise ConfigurationError(problems)

    def _kind_problems(self) -> list[str]:
        given: Any = self.on
        given = list(given) if isinstance(given, Iterable) else [None]
        if not all(isinstance(kind, str) for kind in given):
            return [f"RetryPolicy on: {self.on!r} is neither a list of kinds nor a function of a TaskError"]
        object.__setattr__(self, "on", frozenset(given))
        return [
            f"RetryPolicy on: {kind!r} is no kind of error" + (f"; did you mean {near[0]!r}?" if near else "")
            for kind in given
            if kind not in ERROR_KINDS
            for near in [get_close_matches(kind, ERROR_KINDS, n=1)]
        ]


def is_number(value: object) -> bool:
    """Whether `value` is a finite number; a bool is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


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

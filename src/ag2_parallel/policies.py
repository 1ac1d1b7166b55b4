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


@dataclass(frozen=True, slots=True, init=False)
class RateLimit:
    """How much of a model server tasks may use together; at least one of requests, tokens and concurrent.

    Requests and tokens are spent evenly, at `limit / per` a second from the first call on. A burst is at most
    0.2 seconds of that, or one call, also where `per` is a minute. Tokens are those of the prompt and of the
    answer: reserved by an estimate, and corrected by what the answer says.

    Attributes:
        requests: Requests in `per` seconds.
        tokens: Tokens in `per` seconds.
        per: Seconds.
        concurrent: Calls at once.
        model: For which models, as a shell pattern: `gpt-4*`.
        endpoint: For which servers, as a pattern of `https://host:port` or `host:port`.
        group: For the tasks of which groups, as a pattern.
    """

    requests: float | None
    tokens: float | None
    per: float
    concurrent: int | None
    model: str
    endpoint: str
    group: str

    def __init__(  # noqa: PLR0913 - two names for two of the fields
        self,
        requests: float | None = None,
        tokens: float | None = None,
        per: float = 60.0,
        concurrent: int | None = None,
        model: str = "*",
        endpoint: str = "*",
        group: str = "*",
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        """Refuse numbers that make no sense."""
        problems = list(_minute_problems(requests, requests_per_minute, tokens, tokens_per_minute, per))
        values = {
            "requests": requests if requests_per_minute is None else requests_per_minute,
            "tokens": tokens if tokens_per_minute is None else tokens_per_minute,
            "per": per, "concurrent": concurrent, "model": model, "endpoint": endpoint, "group": group,
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)
        problems += _rate_limit_problems(self)
        if problems:
            raise ConfigurationError(problems)

    def where(self) -> str:
        """For what it holds, in words; empty where it holds for everything."""
        patterns = [(name, getattr(self, name)) for name in ("model", "endpoint", "group")]
        words = ", ".join(f"{name} {pattern}" for name, pattern in patterns if pattern != "*")
        return f" ({words})" if words else ""


def _minute_problems(
    requests: object, requests_per_minute: object, tokens: object, tokens_per_minute: object, per: object
) -> Iterable[str]:
    for name, value, short in (
        ("requests", requests, requests_per_minute),
        ("tokens", tokens, tokens_per_minute),
    ):
        if short is not None and value is not None:
            yield f"RateLimit: give {name} or {name}_per_minute, not both"
        if short is not None and per != 60:
            yield f"RateLimit: {name}_per_minute is for 60 s; with per={per!r} use {name}"


def _rate_limit_problems(limit: RateLimit) -> Iterable[str]:
    if limit.requests is None and limit.tokens is None and limit.concurrent is None:
        yield "RateLimit: give at least one of requests, tokens and concurrent"
    for name in ("requests", "tokens"):
        value = getattr(limit, name)
        if value is not None and not (is_number(value) and 0 < value <= 1e12):
            yield f"RateLimit {name}: {value!r} is not a number above 0"
    if not is_number(limit.per) or not 0 < limit.per <= MAX_SECONDS:
        yield f"RateLimit per: {limit.per!r} is not a number of seconds above 0 and at most {MAX_SECONDS:.0f}"
    if limit.concurrent is not None and not (_is_int(limit.concurrent) and limit.concurrent >= 1):
        yield f"RateLimit concurrent: {limit.concurrent!r} is not a whole number from 1"
    for name in ("model", "endpoint", "group"):
        if not isinstance(getattr(limit, name), str):
            yield f'RateLimit {name}: {getattr(limit, name)!r} is not a pattern such as "gpt-4*"'


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

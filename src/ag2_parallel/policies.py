"""The knobs of a run that are values of their own."""

from __future__ import annotations

import math
import os
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
        if not is_whole(self.max_attempts) or not 1 <= self.max_attempts <= 1000:
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


@dataclass(frozen=True, slots=True)
class Budget:
    """How much the model calls of a run, and those of each task, may use.

    A call is refused once the answers so far have reached a limit; calls in flight are let finish, so the
    overshoot is at most what they use. Retries count. Tokens are those of the answers' usage blocks, prompt and
    completion, plus the estimate for calls that were sent and brought none; costs are those of the usage blocks.

    Attributes:
        max_cost: US dollars for the whole run; past it the run stops. Every model must have a known price.
        max_tokens: Tokens for the whole run; past it the run stops.
        max_task_cost: US dollars for each task, all its attempts together; past it that task fails.
        max_task_tokens: Tokens for each task, all its attempts together; past it that task fails.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    max_task_cost: float | None = None
    max_task_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense, and a budget without a limit."""
        problems = [
            f"Budget {name}: {value!r} is not a number of US dollars above 0; use None for no limit"
            for name in ("max_cost", "max_task_cost")
            if (value := getattr(self, name)) is not None and not (is_number(value) and value > 0)
        ]
        problems += [
            f"Budget {name}: {value!r} is not a whole number of tokens above 0; use None for no limit"
            for name in ("max_tokens", "max_task_tokens")
            if (value := getattr(self, name)) is not None and not (is_whole(value) and value > 0)
        ]
        if all(limit is None for limit in (self.max_cost, self.max_tokens, self.max_task_cost, self.max_task_tokens)):
            problems.append("Budget: it has no limit; give max_cost, max_tokens, max_task_cost or max_task_tokens")
        if problems:
            raise ConfigurationError(problems)

    @property
    def limits_cost(self) -> bool:
        """Whether every model's price must be known."""
        return self.max_cost is not None or self.max_task_cost is not None


@dataclass(frozen=True, slots=True)
class Breaker:
    """What happens when task after task fails for one and the same cause.

    Failures have one cause if they agree in kind and status code, in the endpoint where the message names one,
    and, unless the kind says enough (authentication, quota, connection, rate_limit, timeout, provider), in the
    message with numbers and identifiers left out. A success, or a failure for another cause, starts the count
    anew; tasks that were cancelled, skipped or never started do not count.

    Attributes:
        same_failures: So many tasks in a row, 1 to 1,000,000.
        action: "stop" ends the run: nothing new starts, running tasks finish. "pause" starts nothing for a
            while and then lets one task through: the run goes on if that succeeds, else it waits twice as long.
        probe_after: Seconds of the first pause, above 0; later ones grow to 600 seconds or to this, if that is more.
    """

    same_failures: int = 10
    action: Literal["stop", "pause"] = "stop"
    probe_after: float = 30.0

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        problems = []
        if not is_whole(self.same_failures) or not 1 <= self.same_failures <= 1_000_000:
            problems.append(f"Breaker same_failures: {self.same_failures!r} is not a whole number from 1 to 1000000")
        if self.action not in {"stop", "pause"}:
            problems.append(f'Breaker action: {self.action!r} is neither "stop" nor "pause"')
        if not is_number(self.probe_after) or not 0 < self.probe_after <= MAX_SECONDS:
            problems.append(f"Breaker probe_after: {self.probe_after!r} is not a number of seconds above 0")
        if problems:
            raise ConfigurationError(problems)


@dataclass(frozen=True, slots=True)
class Journal:
    """The file that keeps runs, so that nothing is lost or paid for twice.

    Attributes:
        path: An SQLite file on a local disk; made for its owner alone where there is none. Its folder must be there.
        keep: "all": whole results, transcripts and console included, model calls and events. "summary": results
            without transcript, console and trace, and no events. "none": names, fingerprints, status, usage and errors alone.
        calls: Whether model calls are recorded, so that a task that was cut goes on from there; never with "none".
    """

    path: str | os.PathLike[str]
    keep: Literal["all", "summary", "none"] = "all"
    calls: bool = True

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        problems = []
        given: Any = self.path
        path = os.fspath(given) if isinstance(given, os.PathLike) else given
        if not isinstance(path, str):
            problems.append(f"Journal path: {given!r} is not the path of a file")
        elif not path.strip() or "\0" in path or path == ":memory:":
            problems.append(f"Journal path: {path!r} names no file")
        if self.keep not in {"all", "summary", "none"}:
            problems.append(f'Journal keep: {self.keep!r} is none of "all", "summary" and "none"')
        if not isinstance(self.calls, bool):
            problems.append(f"Journal calls: {self.calls!r} is neither True nor False")
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
    if limit.concurrent is not None and not (is_whole(limit.concurrent) and limit.concurrent >= 1):
        yield f"RateLimit concurrent: {limit.concurrent!r} is not a whole number from 1"
    for name in ("model", "endpoint", "group"):
        if not isinstance(getattr(limit, name), str):
            yield f'RateLimit {name}: {getattr(limit, name)!r} is not a pattern such as "gpt-4*"'


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
    if isinstance(value, RetryPolicy) or (is_whole(value) and 1 <= value <= 1000):  # type: ignore[operator]
        return None
    return f"{value!r} is neither a whole number of attempts from 1 to 1000 nor a RetryPolicy"


def as_retry_policy(value: int | RetryPolicy) -> RetryPolicy:
    """A number of attempts as a policy with the default waits."""
    return value if isinstance(value, RetryPolicy) else RetryPolicy(value)


def is_whole(value: object) -> bool:
    """Whether `value` is a whole number; a bool is none."""
    return isinstance(value, int) and not isinstance(value, bool)

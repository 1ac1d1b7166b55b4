"""Whether a model call is tried again, and when: pure decisions.

What happened is an `Outcome`, made from a parsed answer or a broken connection. `decide` says
`Again` or `GiveUp`, given the policy, the number of tries made and the time the task has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ag2_parallel.provider_errors import provider_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.policies import RetryPolicy

TRIES_BEFORE_FALLBACK: Final = 2
"""Tries of an entry that others come after: the next entry is the better second chance."""

LONGEST_WAIT: Final = 3600.0
"""Seconds that a server's wish is waited for where the task itself has no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one try failed.

    Attributes:
        kind: The cause, in the words of `TaskError.kind`.
        transient: Whether it can go away by itself.
        reason: The cause for a reader: `HTTP 429`, `ReadTimeout`.
        status: HTTP status, where there was an answer.
        hint: Seconds the server asked to wait.
    """

    kind: str
    transient: bool
    reason: str
    status: int | None = None
    hint: float | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Try again after `delay` seconds."""

    delay: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Hand over the last failure; `reason` says why there is no other try where the policy would allow one."""

    reason: str | None = None


Decision: TypeAlias = Again | GiveUp


def answered(status: int, *, body: bytes, should_retry: str | None, hint: float | None) -> Outcome:
    """What an error answer means.

    Args:
        status: The HTTP status, 400 or above.
        body: The answer's body.
        should_retry: The header `x-should-retry`, which OpenAI and Anthropic send where they know better.
        hint: Seconds that the headers ask to wait.
    """
    read = provider_error(status, body, should_retry=should_retry)
    return Outcome(
        kind=read.kind,
        transient=read.transient,
        reason=f"HTTP {status}",
        status=status,
        hint=read.retry_after if hint is None else hint,
    )


def decide(
    outcome: Outcome,
    *,
    policy: RetryPolicy,
    tries: int,
    last_entry: bool,
    remaining: float | None,
    draw: Callable[[], float],
) -> Decision:
    """Whether to try again.

    Args:
        outcome: How the last try failed.
        policy: The user's; a function in its `on` was asked before.
        tries: Tries made so far, the first included.
        last_entry: Whether no other entry of a fallback list comes after this one.
        remaining: Seconds to the attempt's limit; None: no limit.
        draw: Gives a number from 0 to 1.
    """
    if not outcome.transient or (isinstance(policy.on, frozenset) and outcome.kind not in policy.on):
        return GiveUp()
    if tries >= (policy.max_attempts if last_entry else min(policy.max_attempts, TRIES_BEFORE_FALLBACK)):
        return GiveUp()
    delay = wait(policy, tries=tries, hint=outcome.hint, draw=draw)
    if remaining is not None and delay >= remaining:
        return GiveUp(f"not tried again: {_wish(outcome, delay)} and the task has {max(remaining, 0):.0f} s left")
    if remaining is None and (outcome.hint or 0) > LONGEST_WAIT:
        return GiveUp(f"not tried again: {_wish(outcome, delay)}, and at most {LONGEST_WAIT:.0f} s are waited for")
    return Again(delay)


def wait(policy: RetryPolicy, *, tries: int, hint: float | None, draw: Callable[[], float]) -> float:
    """Seconds before the next try.

    Full jitter (Marc Brooker, "Exponential Backoff And Jitter", 2015): anything between nothing
    and the backoff. A server's hint is never undercut; the jitter comes on top, because all that
    were refused together would otherwise come back together.
    """
    exponent = min(tries - 1, 64)  # past 2 ** 64 every maximum is long reached, and floats overflow later
    backoff = min(policy.maximum, policy.initial * policy.factor**exponent)
    if policy.jitter:
        return (hint or 0.0) + draw() * backoff
    return max(hint or 0.0, backoff)


def _wish(outcome: Outcome, delay: float) -> str:
    if outcome.hint:
        return f"the server asks to wait {outcome.hint:.0f} s"
    return f"the next try would be in {delay:.1f} s"

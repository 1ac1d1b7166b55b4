"""Whether a task gets another attempt, and when: pure functions of policy, failure and randomness."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ag2_parallel.error_kinds import PERMANENT_KINDS
from ag2_parallel.policies import MAX_SECONDS

if TYPE_CHECKING:
    import random

    from ag2_parallel.policies import RetryPolicy
    from ag2_parallel.results import TaskError


def decide(policy: RetryPolicy, attempts: int, error: TaskError, rng: random.Random) -> float | None:
    """Seconds until the next attempt of a task that failed may start; None: there is none.

    Args:
        policy: The task's policy.
        attempts: How many attempts it had, the failed one included.
        error: Why the last one failed.
        rng: Where jitter comes from.
    """
    if attempts >= policy.max_attempts or not _selected(policy, error):
        return None
    return max(backoff(policy, attempts, rng), asked_delay(error))


def backoff(policy: RetryPolicy, attempts: int, rng: random.Random) -> float:
    """Seconds to wait after `attempts` failures: exponential, capped, with full jitter where the policy has it."""
    try:
        ceiling = min(policy.maximum, policy.initial * policy.factor ** (attempts - 1))
    except OverflowError:
        ceiling = policy.maximum
    return rng.uniform(0.0, ceiling) if policy.jitter else float(ceiling)


def asked_delay(error: TaskError) -> float:
    """Seconds the model server asked to wait; 0 where it did not, or asked for nonsense."""
    asked = error.retry_after
    if asked is None or not math.isfinite(asked):
        return 0.0
    return min(max(asked, 0.0), MAX_SECONDS)


def _selected(policy: RetryPolicy, error: TaskError) -> bool:
    if policy.on is None:
        return error.retryable and error.kind not in PERMANENT_KINDS
    if callable(policy.on):
        return bool(policy.on(error))
    return error.kind in policy.on

"""Whether a failed try of a call is followed by another, the user's own word included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.gate.off_loop import off_loop
from ag2_parallel.gate.retry import GiveUp, decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.retry import Decision, Outcome
    from ag2_parallel.results import TaskError


async def verdict(
    outcome: Outcome, error: Callable[[], TaskError], attempt: GatedAttempt, *, tries: int, last_entry: bool
) -> Decision:
    """What is next; a function of the user's is asked on a thread.

    Args:
        outcome: How the try failed.
        error: The same in the form that a policy's own function judges.
        attempt: Whose call it is.
        tries: Tries made so far, the first included.
        last_entry: Whether no other entry of a fallback list comes after this one.
    """
    policy = attempt.side.retry
    if outcome.transient and callable(policy.on):
        judge, judged = policy.on, error()
        if not await off_loop(attempt.shared.spawn, lambda: bool(judge(judged))):
            return GiveUp()
    return decide(
        outcome,
        policy=policy,
        tries=tries,
        last_entry=last_entry,
        remaining=attempt.side.owner.patience(),
        draw=attempt.shared.draw,
    )

"""A user's `RetryPolicy.on` function, kept away from the engine loop.

The function is called where the failure happened, on the attempt's own thread, and its verdict
travels in `TaskError.retryable`. For the time limits, which the schedule itself notices, it is asked
once beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ag2_parallel.results import TaskError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.policies import RetryPolicy

_TIMED_OUT = TaskError(type="TimeoutError", message="an attempt ran into its time limit", kind="timeout")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Stands in for the user's function in the schedule's policy: reads what was judged already."""

    on_timeout: bool

    def __call__(self, error: TaskError) -> bool:
        """The verdict on `error`."""
        noticed_by_schedule = error.kind == "timeout" and not error.traceback
        return self.on_timeout if noticed_by_schedule else error.retryable


def judged_beforehand(policy: RetryPolicy) -> RetryPolicy:
    """The policy as the schedule may have it; calls the user's function, so not on the engine loop."""
    if not callable(policy.on):
        return policy
    return replace(policy, on=Verdict(judged(_TIMED_OUT, policy.on).retryable))


def judged(error: TaskError, judge: Callable[[TaskError], bool]) -> TaskError:
    """The error with the user's verdict; a judge that breaks says no and is named in the message."""
    try:
        return replace(error, retryable=bool(judge(error)))
    except Exception as broken:
        note = f"{error.message} (not tried again: RetryPolicy.on raised {type(broken).__name__}: {broken})"
        return replace(error, message=note, retryable=False)

"""What all attempts of a run need in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ag2_parallel.policies import Budget, RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The options that matter to an attempt; those that are functions cross with it.

    Attributes:
        run_id: The run.
        directory: Root of the tasks' own folders.
        llm_config: For tasks that have none.
        model_retry: How often each model call is tried.
        limits: What the run wants of the limits of model calls; named, so that they are found there.
        budget: What may be spent.
        redact: The user's own masking.
        secrets: What is masked in any case, whichever task it came with.
        captures: Whether what tasks print is theirs.
        resources: Factories of what tasks share.
        count_waiting: Whether waiting counts in limits of time.
        run_remaining: Seconds left to the run; None: no limit.
        asks: Whether a person may be asked.
        observed: Names of the events that somebody listens to.
        log_level: From which level on log records are wanted.
    """

    run_id: str
    directory: str
    llm_config: Any
    model_retry: RetryPolicy
    limits: Any
    budget: Budget | None
    redact: Callable[[str], str] | None
    secrets: frozenset[str]
    captures: bool
    resources: Mapping[str, Callable[[], Any]] | None
    count_waiting: bool
    run_remaining: float | None
    asks: bool
    observed: frozenset[str]
    log_level: int

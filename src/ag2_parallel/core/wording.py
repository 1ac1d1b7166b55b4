"""Words for what the schedule decided: errors of tasks that were stopped, skipped or out of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.results import TaskError, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.core.commands import Settle
    from ag2_parallel.core.entries import Entry
    from ag2_parallel.core.upstream import Upstream
    from ag2_parallel.tasks import ParallelTask

_RUN_REASONS = {
    "run_deadline": "the run's time limit (run_timeout) passed",
    "fail_fast": 'another task failed and handle_errors is "fail_fast"',
    "cancelled": "the run was cancelled or interrupted",
    "source_error": "the source of tasks failed",
    "dependency": "a task it depends on did not succeed",
}


def worded(entry: Entry, settle: Settle, upstream: Upstream) -> TaskError | None:
    """The error of a task whose end the schedule decided; None for one that succeeded."""
    if settle.status is TaskStatus.SUCCEEDED:
        return None
    limits: Mapping[str | None, float | None] = {
        "deadline": entry.limits.timeout,
        "attempt_deadline": entry.limits.attempt_timeout,
        "idle": entry.limits.idle_timeout,
    }
    return decided_error(
        entry.task,
        settle.status,
        settle.stop_reason,
        limit=limits.get(settle.stop_reason),
        because=upstream.name_of(settle.because) if settle.because is not None else None,
        last=entry.log.last_error,
    )


def internal_error(error: Exception) -> TaskError:
    """The error of a task that a mistake of ours took along."""
    text = f"internal error of ag2-parallel, please report it: {type(error).__name__}: {error}"
    return TaskError(type="InternalError", message=text, kind="agent", retryable=False)


def decided_error(
    task: ParallelTask,
    status: TaskStatus,
    stop_reason: str | None,
    *,
    limit: float | None = None,
    because: str | None = None,
    last: TaskError | None = None,
) -> TaskError:
    """The error of a task whose end the schedule decided.

    Args:
        task: The task.
        status: How it ended.
        stop_reason: Why.
        limit: The seconds that were up, for a time limit.
        because: Name of the dependency that did not succeed.
        last: What the attempt before failed with, if one did.
    """
    after = f"; its last attempt failed with {last}" if last is not None else ""
    if status is TaskStatus.TIMED_OUT:
        return TaskError(
            type="TimeoutError", message=_time_up(task.name, stop_reason, limit) + after, kind="timeout", retryable=True
        )
    verb = "was not started" if status is TaskStatus.SKIPPED else "was stopped"
    reason = _RUN_REASONS.get(stop_reason or "", stop_reason or "the run was stopped")
    if because is not None:
        reason = f'it depends on "{because}", which did not succeed'
    return TaskError(
        type="TaskStopped", message=f'task "{task.name}" {verb}: {reason}{after}', kind="stopped", retryable=False
    )


def _time_up(name: str, stop_reason: str | None, limit: float | None) -> str:
    seconds = "" if limit is None else f" of {limit:g} s"
    match stop_reason:
        case "idle":
            return f'task "{name}" gave no sign of life for its idle limit{seconds} (idle_timeout)'
        case "attempt_deadline":
            return f'an attempt of task "{name}" ran into its limit{seconds} (attempt_timeout)'
        case _:
            return f'task "{name}" ran into its limit{seconds} (timeout)'

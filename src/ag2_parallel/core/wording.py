"""Words for what the schedule decided: errors of tasks that were stopped, skipped or out of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.results import TaskError, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.core.commands import Settle, Tripped
    from ag2_parallel.core.entries import Entry
    from ag2_parallel.core.upstream import Upstream
    from ag2_parallel.tasks import ParallelTask

_RUN_REASONS = {
    "run_deadline": "the run's time limit (run_timeout) passed",
    "fail_fast": 'another task failed and handle_errors is "fail_fast"',
    "cancelled": "the run was cancelled or interrupted",
    "source_error": "the source of tasks failed",
    "budget": "the run's budget is used up",
    "breaker": "task after task failed for one cause",
    "journal_error": "the journal could not be written any more",
    "dependency": "a task it depends on did not succeed",
}


def worded(entry: Entry, settle: Settle, upstream: Upstream, why: Mapping[str, str]) -> TaskError | None:
    """The error of a task whose end the schedule decided; None for one that succeeded.

    `why` says what stopped the run, by its reason, where more is known than the reason says.
    """
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
        why=why.get(settle.stop_reason or ""),
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
    why: str | None = None,
    last: TaskError | None = None,
) -> TaskError:
    """The error of a task whose end the schedule decided.

    Args:
        task: The task.
        status: How it ended.
        stop_reason: Why.
        limit: The seconds that were up, for a time limit.
        because: Name of the dependency that did not succeed.
        why: What stopped the run, where more is known than `stop_reason` says.
        last: What the attempt before failed with, if one did.
    """
    after = f"; its last attempt failed with {last}" if last is not None else ""
    if status is TaskStatus.TIMED_OUT:
        return TaskError(
            type="TimeoutError", message=_time_up(task.name, stop_reason, limit) + after, kind="timeout", retryable=True
        )
    verb = "was not started" if status is TaskStatus.SKIPPED else "was stopped"
    reason = why or _RUN_REASONS.get(stop_reason or "", stop_reason or "the run was stopped")
    if because is not None:
        reason = f'it depends on "{because}", which did not succeed'
    return TaskError(
        type="TaskStopped", message=f'task "{task.name}" {verb}: {reason}{after}', kind="stopped", retryable=False
    )


def one_cause(command: Tripped) -> str:
    """What a breaker saw."""
    times = "a task" if command.failures == 1 else f"the last {command.failures} tasks"
    return f"{times} failed for one cause: {command.cause}"


def tripped(command: Tripped) -> str:
    """What a breaker saw and does about it."""
    if command.pause is None:
        return f"the run stops, {_tasks(command.waiting)} spared: {one_cause(command)}"
    return (
        f"nothing starts for {command.pause:g} s, then one task is let through "
        f"({_tasks(command.waiting)} waiting): {one_cause(command)}"
    )


def _tasks(count: int) -> str:
    return "1 task is" if count == 1 else f"{count:,} tasks are"


def _time_up(name: str, stop_reason: str | None, limit: float | None) -> str:
    seconds = "" if limit is None else f" of {limit:g} s"
    match stop_reason:
        case "idle":
            return f'task "{name}" gave no sign of life for its idle limit{seconds} (idle_timeout)'
        case "attempt_deadline":
            return f'an attempt of task "{name}" ran into its limit{seconds} (attempt_timeout)'
        case _:
            return f'task "{name}" ran into its limit{seconds} (timeout)'

"""What all attempts of a run share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ag2_parallel.ports import AttemptGate, AttemptOrder, Clock, FrameworkChoice
    from ag2_parallel.records import CallTape, Receipts
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.results import TaskError
    from ag2_parallel.workers.claims import Claims
    from ag2_parallel.workers.daemon_threads import DaemonThreads
    from ag2_parallel.workers.questions import Questions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices:
    """What all attempts of a run share."""

    run_id: str
    directory: Path
    context: contextvars.Context
    frameworks: FrameworkChoice
    resources: Mapping[str, Any]
    questions: Questions
    claims: Claims
    redactor: Redactor
    threads: DaemonThreads
    clock: Clock
    task_error: Callable[..., TaskError]
    emit: Callable[..., None]
    observed: Callable[..., bool]
    """Whether anybody listens to a kind of event, or to any."""
    console: Callable[[str], list[str]]
    """From a task's name to the list its console text is appended to."""
    open_gate: Callable[[int, Callable[[], dict[str, Any]]], AttemptGate]
    """From a task's index, and what makes its attempt's own parts, to the attempt's gate; called on the engine loop."""
    receipts: Callable[[str], Receipts]
    """From a task's name to its effects; called from the task's own threads."""
    count_waiting: bool = True
    """Whether waiting for limits counts in the task's and the attempt's time."""
    run_limit: float | None = None
    """Monotonic time of the run's limit."""
    tape: Callable[[AttemptOrder], CallTape | None] = lambda _order: None
    """The recorded model calls of an attempt; called on the engine loop."""

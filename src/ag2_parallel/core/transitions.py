"""The states of a task and of an attempt, and what leads from one to the next.

The tables are the rules: the schedule moves along them and by no other way.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class IllegalTransitionError(RuntimeError):
    """Something happened that cannot happen in that state: a mistake in this package, never the caller's."""


class TaskState(StrEnum):
    """Where a task is between being added and being settled."""

    BLOCKED = "blocked"
    """Waits for its dependencies."""
    READY = "ready"
    """Waits for a slot."""
    RUNNING = "running"
    """Its attempt holds a slot."""
    UNWINDING = "unwinding"
    """Its attempt was stopped by a limit of its own and another follows, once that one's code has ended."""
    BACKOFF = "backoff"
    """Its attempt failed and the delay before the next one runs."""
    SETTLED = "settled"
    """Its outcome is decided."""


class TaskEvent(StrEnum):
    """What can happen to a task."""

    RELEASED = "released"
    """The last dependency succeeded, or there was none."""
    STARTED = "started"
    """It got a slot."""
    REFUSED = "refused"
    """There was no thread for it."""
    FAILED = "failed"
    """Its attempt failed by itself and another follows."""
    STOPPED = "stopped"
    """Its attempt hit a limit of its own and another follows."""
    UNWOUND = "unwound"
    """The stopped attempt's code ended or was given up."""
    DUE = "due"
    """The delay is over."""
    DECIDED = "decided"
    """Its outcome is known."""


class AttemptState(StrEnum):
    """Where an attempt's code is."""

    RUNNING = "running"
    """It holds a slot."""
    STOPPING = "stopping"
    """It was told to stop and has its grace."""
    INSISTED = "insisted"
    """The grace is used up and the driver insists."""
    ABANDONED = "abandoned"
    """It did not end and is given up; its thread may still come back."""
    ENDED = "ended"
    """Its code is at its end."""


class AttemptEvent(StrEnum):
    """What can happen to an attempt."""

    STOP = "stop"
    """A limit or a stop hit it."""
    GRACE_OVER = "grace_over"
    """It did not end within the grace."""
    GIVE_UP = "give_up"
    """It did not end on insisting either."""
    END = "end"
    """Its code ended, or never began because there was no thread."""


TASK_TRANSITIONS: Final[dict[TaskState, dict[TaskEvent, TaskState]]] = {
    TaskState.BLOCKED: {
        TaskEvent.RELEASED: TaskState.READY,
        TaskEvent.DECIDED: TaskState.SETTLED,
    },
    TaskState.READY: {
        TaskEvent.STARTED: TaskState.RUNNING,
        TaskEvent.DECIDED: TaskState.SETTLED,
    },
    TaskState.RUNNING: {
        TaskEvent.REFUSED: TaskState.READY,
        TaskEvent.FAILED: TaskState.BACKOFF,
        TaskEvent.STOPPED: TaskState.UNWINDING,
        TaskEvent.DECIDED: TaskState.SETTLED,
    },
    TaskState.UNWINDING: {
        TaskEvent.UNWOUND: TaskState.BACKOFF,
        TaskEvent.DECIDED: TaskState.SETTLED,
    },
    TaskState.BACKOFF: {
        TaskEvent.DUE: TaskState.READY,
        TaskEvent.DECIDED: TaskState.SETTLED,
    },
    TaskState.SETTLED: {},
}

ATTEMPT_TRANSITIONS: Final[dict[AttemptState, dict[AttemptEvent, AttemptState]]] = {
    AttemptState.RUNNING: {
        AttemptEvent.STOP: AttemptState.STOPPING,
        AttemptEvent.END: AttemptState.ENDED,
    },
    AttemptState.STOPPING: {
        AttemptEvent.GRACE_OVER: AttemptState.INSISTED,
        AttemptEvent.END: AttemptState.ENDED,
    },
    AttemptState.INSISTED: {
        AttemptEvent.GIVE_UP: AttemptState.ABANDONED,
        AttemptEvent.END: AttemptState.ENDED,
    },
    AttemptState.ABANDONED: {
        AttemptEvent.END: AttemptState.ENDED,
    },
    AttemptState.ENDED: {},
}


def next_task_state(index: int, state: TaskState, event: TaskEvent) -> TaskState:
    """The state that `event` leads to; `IllegalTransitionError` if the table has none."""
    try:
        return TASK_TRANSITIONS[state][event]
    except KeyError:
        raise IllegalTransitionError(f"task {index} is {state} and cannot be {event}") from None


def next_attempt_state(index: int, number: int, state: AttemptState, event: AttemptEvent) -> AttemptState:
    """The state that `event` leads to; `IllegalTransitionError` if the table has none."""
    try:
        return ATTEMPT_TRANSITIONS[state][event]
    except KeyError:
        raise IllegalTransitionError(f"attempt {number} of task {index} is {state}: {event} is impossible") from None

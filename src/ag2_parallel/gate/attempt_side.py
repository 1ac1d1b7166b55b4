"""What the gate may ask of an attempt."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ag2_parallel.gate.wishes import NO_LIMITS, CallLimits
from ag2_parallel.spans import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.budget import TaskSpending
    from ag2_parallel.gate.cassette import Cassette
    from ag2_parallel.policies import RetryPolicy
    from ag2_parallel.records import CallTape
    from ag2_parallel.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSide:
    """What the gate may ask of an attempt and tell it.

    Attributes:
        retry: How often each model call is tried.
        redactor: Masks what an error shows of an answer.
        remaining: Seconds to the attempt's limit, None without one; called on the loop.
        check_call: Called in the worker's thread before each call; raises `TaskStopped` to refuse it.
        alive: Told, on the loop, that something of an answer arrived.
        waiting: Told, on the loop, that the attempt begins (True) or ends (False) to wait for a next try.
        emit: Takes an event's class and fields, on the loop.
        observed: Whether anybody listens to events.
        limits: What the run wants of the gate.
        group: The task's group, for limits that name one.
        priority: The task's; higher goes first where calls wait.
        waited_for: Told, on the loop, for which limit a call waited, and how many seconds.
        spending: The task's account, where there is a budget.
        cut_off: Told a kind and a message when a call is refused for good: the attempt has to end. From any thread.
        task: The task's name.
        failed: Told why the task fails, whatever its code makes of that; the attempt has to end. From any thread.
        cassette: The run's; None: it has none.
        tape: The attempt's recorded calls, and where its own are written down; None: neither.
        trace: Where calls and their waits are written down.
        speaker: The agent at work, where known.
    """

    retry: RetryPolicy
    redactor: Redactor
    remaining: Callable[[], float | None]
    check_call: Callable[[], None]
    alive: Callable[[], None]
    waiting: Callable[[bool], None]
    emit: Callable[..., None]
    observed: Callable[[], bool]
    limits: CallLimits = NO_LIMITS
    group: str | None = None
    priority: int = 0
    waited_for: Callable[[str, float], None] = lambda _name, _seconds: None
    spending: TaskSpending | None = None
    cut_off: Callable[[str, str], None] = lambda _kind, _message: None
    task: str = ""
    failed: Callable[[Exception], None] = lambda _error: None
    cassette: Cassette | None = None
    tape: CallTape | None = None
    trace: Trace = field(default_factory=lambda: Trace(time.monotonic))
    speaker: Callable[[], str | None] = lambda: None

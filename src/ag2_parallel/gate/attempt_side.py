"""What the gate may ask of an attempt."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ag2_parallel.gate.wishes import NO_LIMITS, CallLimits
from ag2_parallel.spans import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.budget import TaskSpending
    from ag2_parallel.gate.cassette import Cassette
    from ag2_parallel.policies import RetryPolicy
    from ag2_parallel.records import CallTape
    from ag2_parallel.redaction import Redactor


class CallOwner(Protocol):
    """The attempt that makes the calls."""

    def patience(self) -> float | None:
        """Seconds to its limit, None without one; called on the loop."""

    def check_call(self) -> None:
        """Called in the worker's thread before each call; raises `TaskStopped` to refuse it."""

    def sign_of_life(self) -> None:
        """Something of an answer arrived; called on the loop."""

    def tell_waiting(self, *, waiting: bool) -> None:
        """It begins (True) or ends (False) to wait for a limit or a next try; called on the loop."""

    def emit(self, event: Any, /, **fields: Any) -> None:
        """Takes an event's class and fields, on the loop."""

    def observes_calls(self) -> bool:
        """Whether anybody listens to events."""

    def cut_off(self, kind: str, message: str, /) -> None:
        """A call is refused for good: it has to end. From any thread."""

    def fail(self, error: Exception, /) -> None:
        """Its task fails so, whatever its code makes of that; it has to end. From any thread."""

    def speaker(self) -> str | None:
        """The agent at work, where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSide:
    """What the gate may ask of an attempt and tell it.

    Attributes:
        retry: How often each model call is tried.
        redactor: Masks what an error shows of an answer.
        owner: The attempt itself.
        limits: What the run wants of the gate.
        group: The task's group, for limits that name one.
        priority: The task's; higher goes first where calls wait.
        waited_for: Told, on the loop, for which limit a call waited, and how many seconds.
        spending: The task's account, where there is a budget.
        task: The task's name.
        cassette: The run's; None: it has none.
        tape: The attempt's recorded calls, and where its own are written down; None: neither.
        trace: Where calls and their waits are written down.
    """

    retry: RetryPolicy
    redactor: Redactor
    owner: CallOwner
    limits: CallLimits = NO_LIMITS
    group: str | None = None
    priority: int = 0
    waited_for: Callable[[str, float], None] = lambda _name, _seconds: None
    spending: TaskSpending | None = None
    task: str = ""
    cassette: Cassette | None = None
    tape: CallTape | None = None
    trace: Trace = field(default_factory=lambda: Trace(time.monotonic))

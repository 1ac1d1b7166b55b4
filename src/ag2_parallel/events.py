"""What happens in a run, as typed values that can be serialised.

Every event carries the run, and where it is about one task the task's name and index and the
number of the attempt. Times are aware UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar

from ag2_parallel.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened.

    Attributes:
        run_id: The run it happened in.
        task: Name of the task it is about, if one.
        index: The task's place in the input.
        attempt: The attempt's number, from 1.
        at: When it happened, in UTC.
    """

    run_id: str
    task: str | None = None
    index: int | None = None
    attempt: int | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    droppable: ClassVar[bool] = False
    """Whether it may be dropped, oldest first, when observers are too slow."""

    @property
    def type(self) -> str:
        """The event's class name."""
        return type(self).__name__

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        if isinstance(plain.get("usage"), Usage):
            plain["usage"] = plain["usage"].to_dict()
        return {"type": self.type} | plain | {"at": self.at.isoformat()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began; `total` is None where it is not known how many tasks there are.

    `how_to_resume` is what a user types to go on with the run; None without a journal.
    """

    total: int | None
    max_workers: int
    how_to_resume: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStopping(Event):
    """Nothing new starts any more; `running` says whether running tasks are stopped too."""

    reason: str
    stopped_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """Every task is settled and every attempt has ended or was abandoned."""

    stop_reason: str | None
    counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(Event):
    """An attempt of a task started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStopping(Event):
    """An attempt was told to stop and has its grace to unwind."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Event):
    """An attempt's code came to its end, or was given up; `ended` says how."""

    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetrying(Event):
    """An attempt failed and the task will be tried again after `delay` seconds."""

    delay: float
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished(Event):
    """A task is settled; its result is published."""

    status: str
    stop_reason: str | None
    duration: float
    error: str | None
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKept(Event):
    """A task keeps its result of an earlier life of the run, and does not run."""

    status: str
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReported(Event):
    """A task's own code said something through `ctx.report`."""

    message: str
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent(Event):
    """An agent said or did something; `name` is AG2's name of the event, `content` its fields as plain data."""

    name: str
    agent: str | None
    content: dict[str, Any]
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentActive(Event):
    """Another agent is at work, or another tool of its; `tool` is None while it is no tool."""

    agent: str | None
    tool: str | None
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallQueued(Event):
    """A model call, or its next try, stands before the limits."""

    call: int
    endpoint: str
    model: str | None
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallAdmitted(Event):
    """The limits let a model call through, after `waited` seconds."""

    call: int
    endpoint: str
    model: str | None
    waited: float
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallRefused(Event):
    """A model call is not sent, and fails; `reason` says why."""

    call: int
    endpoint: str
    model: str | None
    reason: str
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallStarted(Event):
    """A request was sent to a model server."""

    call: int
    endpoint: str
    model: str | None
    try_number: int
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallFirstByte(Event):
    """The first bytes of an answer have arrived, with its HTTP status."""

    call: int
    endpoint: str
    status: int
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallThrottled(Event):
    """An endpoint answered 429: all its calls pause for `pause` seconds, then go at a pace.

    `rate` is the pace it had so far, in requests a second; None at the first time.
    """

    call: int
    endpoint: str
    pause: float
    rate: float | None
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallHedged(Event):
    """A second copy of a request was sent, because there was no answer `after` seconds after the first."""

    call: int
    endpoint: str
    model: str | None
    after: float
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallCut(Event):
    """A model call was ended because its task was stopped; `reason` is the task's."""

    call: int
    endpoint: str
    model: str | None
    reason: str
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallFinished(Event):
    """A model call ended: `status` is the HTTP status or the reason there is none."""

    call: int
    endpoint: str
    model: str | None
    status: str
    duration: float
    usage: Usage
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallReplayed(Event):
    """A model call was answered from a recording, without a request; `usage` is what it used when it was paid for."""

    call: int
    endpoint: str
    model: str | None
    usage: Usage
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallRetrying(Event):
    """A request failed and will be sent again after `delay` seconds."""

    call: int
    endpoint: str
    reason: str
    delay: float
    droppable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHint(Event):
    """Something that would make the run better, said once."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWarning(Event):
    """Something a user should know that did not stop anything; the log has it as a warning."""

    message: str

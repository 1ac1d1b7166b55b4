"""Where a run stands, from its events: what a progress display shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ag2_parallel import events
from ag2_parallel.reporting.log_seen import log_is_seen
from ag2_parallel.reporting.words import if_cut_off
from ag2_parallel.results import TaskStatus
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from ag2_parallel.events import Event

WANTS: Final = frozenset({
    events.RunStarted, events.RunStopping, events.RunFinished, events.RunHint, events.RunWarning, events.AttemptStarted,
    events.AttemptStopping, events.TaskRetrying, events.TaskFinished, events.TaskKept, events.TaskReported, events.AgentActive,
    events.ModelCallQueued, events.ModelCallAdmitted, events.ModelCallRefused, events.ModelCallStarted,
    events.ModelCallRetrying, events.ModelCallCut, events.ModelCallFinished,
})  # fmt: skip
"""The events a live display needs."""

_MOST_EARLY: Final = 1000
_SHORT_WAIT: Final = 0.5
"""Seconds that a call may stand before the limits without a word about it."""


@dataclass(slots=True)
class RunningTask:
    """A task that has started.

    Attributes:
        name: Its name.
        since: When its first attempt started, monotonic.
        attempt: The number of its attempt.
        agent: The agent at work.
        tool: The tool at work.
        model: The model that is asked.
        queued: Since when a call stands before the limits, monotonic.
        again: When something is tried again, and what, or None.
        said: What its own code reported last, or why it is being stopped.
        tokens: Tokens of its calls so far.
    """

    name: str
    since: float
    attempt: int = 1
    agent: str | None = None
    tool: str | None = None
    model: str | None = None
    queued: float | None = None
    again: tuple[float, str] | None = None
    said: str | None = None
    tokens: int = 0

    def step(self, now: float) -> str:
        """What it does now, in some words."""
        if self.again is not None:
            return f"{self.again[1]} in {max(0.0, self.again[0] - now):.0f} s"
        if self.queued is not None and now - self.queued > _SHORT_WAIT:
            return f"waits for a limit, {now - self.queued:.0f} s"
        doing = f"tool {self.tool}" if self.tool else f"asks {self.model}" if self.model else self.said or ""
        parts = [self.agent or "", doing, f"(attempt {self.attempt})" if self.attempt > 1 else ""]
        return " ".join(part for part in parts if part) or "runs"


@dataclass(slots=True)
class RunView:
    """A run as its events tell it.

    Attributes:
        total: How many tasks; None: not known.
        counts: Tasks that settled in this run by status, the succeeded first.
        kept: How many keep a result of an earlier life, or of a sample.
        running: Those that have started, by index, the oldest first.
        usage: Of the settled tasks.
        notes: Sentences for the reader that were not shown yet.
    """

    total: int | None = None
    started: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    kept: int = 0
    running: dict[int, RunningTask] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    notes: list[str] = field(default_factory=list)
    finished: bool = False
    _tokens: int = 0
    _cost: float | None = 0.0
    _early: dict[int, Event] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """How many tasks are settled, those that keep a result included."""
        return self.ran + self.kept

    @property
    def ran(self) -> int:
        """How many tasks settled in this run."""
        return sum(self.counts.values())

    @property
    def bad(self) -> int:
        """How many of them did not succeed."""
        return self.ran - self.counts.get("succeeded", 0)

    @property
    def tokens(self) -> int:
        """Tokens so far, those of running tasks included."""
        return self._tokens + sum(task.tokens for task in list(self.running.values()))

    @property
    def cost(self) -> float | None:
        """US dollars of the settled tasks; None where a price is unknown."""
        return self._cost

    def remaining(self, now: float) -> float | None:
        """Seconds to the end if the rest goes as what is done; None where that cannot be said."""
        done, ran = self.done, self.ran
        if self.total is None or not ran or ran < min(3, self.total - self.kept) or done >= self.total:
            return None
        return (now - self.started) / ran * (self.total - done)

    def take(self, event: Event, now: float) -> None:
        """Take note of an event; `now` is monotonic."""
        task = None if event.index is None else self.running.get(event.index)
        match event:
            case events.RunStarted():
                self._run_started(event, now)
            case events.RunFinished():
                self.finished = True
                self.running.clear()
            case events.AttemptStarted() if event.index is not None:
                self._attempt_started(event, now)
            case events.TaskFinished() | events.TaskKept():
                self._settled(event)
            case events.RunStopping() if event.reason != "interrupted" or not log_is_seen():
                running = "running tasks are stopped" if event.stopped_running else "running tasks finish"
                self.notes.append(f"stopping ({event.reason}): nothing new starts, {running}")
            case events.RunHint():
                self.notes.append(f"hint: {event.message}")
            case events.RunWarning() if not log_is_seen():
                self.notes.append(f"warning: {event.message}")
            case _ if task is not None:
                _follow(task, event, now)
            case _ if event.index is not None:
                self._keep_early(event.index, event)
            case _:
                pass

    def _run_started(self, event: events.RunStarted, now: float) -> None:
        self.total, self.started = event.total, now
        if event.how_to_resume is not None:
            self.notes.append(if_cut_off(event.how_to_resume))

    def _keep_early(self, index: int, event: Event) -> None:
        """A task's first step may be told before its start is; that of a task which has ended is not kept for long."""
        self._early[index] = event
        if len(self._early) > _MOST_EARLY:
            del self._early[next(iter(self._early))]

    def _attempt_started(self, event: events.AttemptStarted, now: float) -> None:
        assert event.index is not None
        task = self.running.get(event.index)
        if task is None:
            task = self.running[event.index] = RunningTask(event.task or "", now)
            early = self._early.pop(event.index, None)
            if early is not None:
                _follow(task, early, now)
        else:
            task.attempt, task.again, task.said = event.attempt or 1, None, None

    def _settled(self, event: events.TaskFinished | events.TaskKept) -> None:
        if isinstance(event, events.TaskKept):
            self.kept += 1
            return
        counts = self.counts | {event.status: self.counts.get(event.status, 0) + 1}
        self.counts = {status: counts[status] for status in map(str, TaskStatus) if status in counts}
        if event.index is not None:
            self.running.pop(event.index, None)
        self._tokens += event.usage.total_tokens
        self._cost = None if self._cost is None or event.usage.cost is None else self._cost + event.usage.cost


def _follow(task: RunningTask, event: Event, now: float) -> None:
    """What one task does."""
    match event:
        case events.AgentActive():
            task.agent, task.tool, task.said = event.agent, event.tool, None
        case events.ModelCallQueued():
            task.queued, task.model = now, event.model or "a model"
        case events.ModelCallAdmitted() | events.ModelCallStarted():
            task.queued = task.again = None
            task.model = event.model or "a model"
        case events.ModelCallRetrying():
            task.again = (now + event.delay, f"{event.reason}, asks again")
        case events.ModelCallFinished():
            task.queued = task.again = task.model = None
            task.tokens += event.usage.total_tokens
        case events.ModelCallRefused() | events.ModelCallCut():
            task.queued = task.again = task.model = None
        case events.TaskRetrying():
            task.again = (now + event.delay, f"attempt {task.attempt} failed, starts again")
            task.queued = task.model = task.tool = task.agent = None
        case events.TaskReported():
            task.said = event.message
        case events.AttemptStopping():
            task.said = f"is stopped: {event.reason}"
        case _:
            pass

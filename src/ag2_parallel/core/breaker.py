"""Whether the last failures have one cause, and what that leads to: a function of results and times.

    closed ──one cause so often──► open ──pause over──► half open ──an attempt starts──► probing
      ▲                             ▲                                                    │  │
      │                             └─────────────────────── it fails ───────────────────┘  │
      └───────────────────────────────────────────────── it succeeds ───────────────────────┘

Only the probe's own outcome counts while the circuit is not closed: what else ends was started before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ag2_parallel.policies import Breaker
    from ag2_parallel.results import TaskError

LONGEST_PAUSE: Final = 600.0
"""Seconds to which a pause grows, unless the first one is longer."""

_KIND_SAYS_ENOUGH: Final = frozenset({"authentication", "quota", "connection", "rate_limit", "timeout", "provider"})
"""Kinds whose messages differ from failure to failure though the cause is one."""

_TYPE_SAYS_ENOUGH: Final = frozenset({"UnusableAnswerError"})
"""The same of types: this one's message shows what the server sent in place of an answer."""

_ENDPOINT: Final = re.compile(r"https?://[^\s/'\")]+|\b[\w-]+(?:\.[\w-]+)+:\d+\b|\blocalhost:\d+\b")

_TASK_NAME: Final = re.compile(r'task (?:number \d+|"[^"]*")')

_CHANGING: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"  # UUIDs
    r"|\b(?:req|chatcmpl|call|msg|resp)[-_]\w+"  # identifiers of requests and answers
    r"|\b(?=[a-f]*\d)[0-9a-f]{8,}\b"  # hexadecimal
    r"|\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d(?::\d\d)?"  # dates and times of the day
    r"|(?<![\w.:-])\d[\d,_.]*(?:ms|s|m|h)?(?:\d[\d.]*m?s)?(?![\w-])",  # numbers that are no part of a name
    re.IGNORECASE,
)

_SHOWN: Final = 200
"""Characters of a failure's message that are shown of its cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What failures have in common; `sample` is the message of one of them."""

    kind: str
    status_code: int | None
    text: str
    sample: str = field(compare=False, default="")

    def __str__(self) -> str:
        """For a reader."""
        status = "" if self.status_code is None else f", status {self.status_code}"
        return f"{self.kind}{status}: {self.sample}"


def cause_of(error: TaskError | None, stop_reason: str | None) -> Cause:
    """The cause of a failure; a time limit that was up has no error yet, and its name says which."""
    if error is None:
        return Cause("timeout", None, stop_reason or "", f"a task ran into its limit ({stop_reason})")
    if error.kind in _KIND_SAYS_ENOUGH or error.type in _TYPE_SAYS_ENOUGH:
        text = " ".join(sorted(set(_ENDPOINT.findall(error.message))))
    else:
        text = f"{error.type}: {normalised(error.message)}"
    sample = error.message if len(error.message) <= _SHOWN else f"{error.message[:_SHOWN]}…"
    return Cause(error.kind, error.status_code, text, f"{error.type}: {sample}")


def normalised(message: str) -> str:
    """A message without what changes from task to task: names of tasks, numbers, times, identifiers."""
    return _CHANGING.sub("#", _TASK_NAME.sub("task", message))


class State(StrEnum):
    """Where a circuit is."""

    CLOSED = "closed"
    """Everything may start."""
    OPEN = "open"
    """Nothing may."""
    HALF_OPEN = "half_open"
    """One attempt may."""
    PROBING = "probing"
    """It has started, and nothing else may."""


@dataclass(frozen=True, slots=True)
class Trip:
    """The circuit opened, or stays open after a probe.

    Attributes:
        cause: What the failures have in common.
        failures: How many tasks in a row failed for it.
        pause: Seconds to the next probe; None: there is none, the run is to stop.
    """

    cause: Cause
    failures: int
    pause: float | None


class Circuit:
    """Counts failures, and says whether something may start."""

    __slots__ = ("_cause", "_failures", "_pause", "_policy", "_probe", "state")

    def __init__(self, policy: Breaker | None) -> None:
        """Closed; without a policy it stays so."""
        self.state = State.CLOSED
        self._policy = policy
        self._cause: Cause | None = None
        self._failures = 0
        self._pause = policy.probe_after if policy is not None else 0.0
        self._probe: int | None = None

    @property
    def lets_start(self) -> bool:
        """Whether an attempt may start now."""
        return self.state is State.CLOSED or self.state is State.HALF_OPEN

    def started(self, index: int) -> None:
        """An attempt of this task started."""
        if self.state is State.HALF_OPEN:
            self.state, self._probe = State.PROBING, index

    def taken_back(self, index: int) -> None:
        """An attempt of this task did not start after all."""
        if self._is_probe(index):
            self.state, self._probe = State.HALF_OPEN, None

    def probe_due(self) -> None:
        """The pause is over."""
        if self.state is State.OPEN:
            self.state = State.HALF_OPEN

    def succeeded(self, index: int) -> bool:
        """A task succeeded; returns whether that ends the pause."""
        recovers = self._is_probe(index)
        if self.state is State.CLOSED or recovers:
            self._cause, self._failures = None, 0
        if recovers and self._policy is not None:
            self.state, self._probe, self._pause = State.CLOSED, None, self._policy.probe_after
        return recovers

    def failed(self, index: int, cause: Cause) -> Trip | None:
        """A task that had started failed for good; returns what that leads to, if anything."""
        if self._policy is None:
            return None
        if self._is_probe(index):
            return self.probe_failed(index, cause)
        if self.state is not State.CLOSED:
            self._failures += cause == self._cause
            return None
        self._failures = self._failures + 1 if cause == self._cause else 1
        self._cause = cause
        if self._failures < self._policy.same_failures:
            return None
        self.state = State.OPEN
        return Trip(cause, self._failures, None if self._policy.action == "stop" else self._pause)

    def probe_failed(self, index: int, cause: Cause) -> Trip | None:
        """An attempt failed, whether its task is tried again or not; only the probe's counts here."""
        if self._policy is None or not self._is_probe(index):
            return None
        self._failures = self._failures + 1 if cause == self._cause else 1
        self._cause, self.state, self._probe = cause, State.OPEN, None
        self._pause = min(2 * self._pause, max(LONGEST_PAUSE, self._policy.probe_after))
        return Trip(cause, self._failures, self._pause)

    def _is_probe(self, index: int) -> bool:
        return self.state is State.PROBING and self._probe == index

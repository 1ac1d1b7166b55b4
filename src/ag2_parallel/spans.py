"""What happened inside a task, span by span: kept for every task, whether or not anybody observes."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MOST_SPANS: Final = 2_000
"""Spans kept for each task: the longest ones. The others are counted."""

UNFINISHED: Final = "unfinished"
"""The detail of a span that had not ended when its attempt was decided."""


class Span(NamedTuple):
    """A stretch of a task's time.

    Attributes:
        kind: `attempt`, `call` (a model call, its tries and waits included), `wait` (for a limit, a next try of a call
            or a person), `tool`, or `backoff` (between two attempts).
        label: The attempt's number, the model, what is waited for, or the tool.
        start: Seconds from the task's start.
        end: Seconds from the task's start.
        detail: More in words, such as the agent, the HTTP status and the tokens of a call.
    """

    kind: str
    label: str
    start: float
    end: float
    detail: str = ""

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start

    def to_dict(self) -> dict[str, Any]:
        """Plain data; times to the microsecond."""
        kind, label, start, end, detail = self
        return {"kind": kind, "label": label, "start": round(start, 6), "end": round(end, 6), "detail": detail}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Span:
        """The span that `to_dict` described."""
        return cls(plain["kind"], plain["label"], plain["start"], plain["end"], plain.get("detail", ""))

    def masked(self, mask: Callable[[str], str]) -> Span:
        """The same with the secrets of its texts hidden."""
        return Span(self.kind, mask(self.label), self.start, self.end, mask(self.detail) if self.detail else "")

    def later(self, seconds: float) -> Span:
        """The same, seen from a point of time `seconds` before."""
        return Span(self.kind, self.label, self.start + seconds, self.end + seconds, self.detail)


class Spans(NamedTuple):
    """Those of an attempt, in seconds from its start, and how many more there were."""

    kept: tuple[Span, ...] = ()
    dropped: int = 0


class Trace:
    """The spans of one attempt while it runs, in seconds from its start.

    Written on the engine loop and in the attempt's threads without a lock: each step is atomic. Past twice
    `MOST_SPANS` the shorter half is forgotten; a span that is added in that moment may be forgotten with it.
    """

    __slots__ = ("_added", "_clock", "_numbers", "_open", "_origin", "_spans")

    def __init__(self, clock: Callable[[], float]) -> None:
        """The attempt starts now; `clock` gives monotonic seconds."""
        self._clock = clock
        self._origin = clock()
        self._spans: list[Span] = []
        self._open: dict[int, tuple[str, str, float]] = {}
        self._numbers = itertools.count()
        self._added = 0

    def begin(self, kind: str, label: str) -> int:
        """Something begins; returns what `end` wants."""
        number = next(self._numbers)
        self._open[number] = (kind, label, self._clock() - self._origin)
        return number

    def end(self, number: int, detail: str = "") -> None:
        """It is over; a second call does nothing."""
        begun = self._open.pop(number, None)
        if begun is None:
            return
        kind, label, start = begun
        self._added += 1
        self._spans.append(Span(kind, label, start, self._clock() - self._origin, detail))
        if len(self._spans) > 2 * MOST_SPANS:
            self._spans = longest(self._spans)

    def so_far(self) -> Spans:
        """The spans until now, what has not ended as `UNFINISHED`, and how many were forgotten."""
        now = self._clock() - self._origin
        unfinished = [Span(*begun, now, UNFINISHED) for begun in tuple(self._open.values())]
        kept = self._spans[:]
        return Spans((*kept, *unfinished), max(0, self._added - len(kept)))


def longest(spans: Iterable[Span], most: int = MOST_SPANS) -> list[Span]:
    """The `most` longest spans."""
    return heapq.nlargest(most, spans, key=lambda span: span.end - span.start)

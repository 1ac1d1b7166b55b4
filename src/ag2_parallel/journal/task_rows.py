"""What a task's row says, and its checksum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.journal.checksums import row_checksum
from ag2_parallel.journal.codec import read_text, stored_text
from ag2_parallel.records import EarlierTask

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from ag2_parallel.results import ParallelTaskResult

_SUMMED: Final = (
    "name", "place", "fingerprint", "status", "cut", "stop_reason", "error_kind", "team", "attempts", "duration",
    "finished_at", "prompt_tokens", "completion_tokens", "calls", "cost",
)  # fmt: skip

_NOT_SETTLED: Final[dict[str, Any]] = {
    "status": None, "stop_reason": None, "error_kind": None, "team": None, "attempts": 0, "duration": 0.0,
    "finished_at": None, "prompt_tokens": 0, "completion_tokens": 0, "calls": 0, "cost": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as the journal has it, its result left aside.

    Attributes:
        task: The row's number.
        name: The task's name.
        place: Its place in the input, from 0.
        fingerprint: Of what it does.
        status: In the words of `TaskStatus`; None: it was running, or waiting for its next attempt, at the end.
        cut: Whether its last attempt was ended from outside.
        stop_reason: Why it ended.
        error_kind: The kind of its error, where there is one.
        team: Its group.
        attempts: How many it had.
        duration: Seconds, measured by a clock that nobody sets.
        finished_at: When it was settled, ISO 8601 in UTC.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens generated.
        calls: Model calls answered; of a task that is not settled, 0 or those that were recorded.
        cost: US dollars; None where unknown.
    """

    task: int
    name: str
    place: int
    fingerprint: str
    status: str | None
    cut: bool
    stop_reason: str | None
    error_kind: str | None
    team: str | None
    attempts: int
    duration: float
    finished_at: str | None
    prompt_tokens: int
    completion_tokens: int
    calls: int
    cost: float | None


def started_row(run: int, life: int, name: str, place: int, fingerprint: str) -> dict[str, Any]:
    """The columns of a task whose attempt begins."""
    row: dict[str, Any] = {"run": run, "life": life, "name": stored_text(name), "place": place}
    row["fingerprint"] = stored_text(fingerprint)
    return row | {"sum": _sum(row | _NOT_SETTLED | {"cut": 1})}


def unsettled_sum(row: Mapping[str, Any], *, cut: bool) -> int:
    """The checksum of such a row after an attempt ended."""
    return _sum({**row, **_NOT_SETTLED, "cut": int(cut)})


def settled_row(run: int, life: int, result: ParallelTaskResult, fingerprint: str, *, cut: bool) -> dict[str, Any]:
    """The columns of a task that is settled."""
    usage = result.usage
    cost = None if usage.cost is None or math.isnan(usage.cost) else float(usage.cost)
    row: dict[str, Any] = {
        "run": run,
        "life": life,
        "name": stored_text(result.name),
        "place": result.index,
        "fingerprint": stored_text(fingerprint),
        "status": str(result.status),
        "cut": int(cut),
        "stop_reason": result.stop_reason,
        "error_kind": result.error.kind if result.error else None,
        "team": None if result.group is None else stored_text(result.group),
        "attempts": result.attempts,
        "duration": float(result.duration),
        "finished_at": result.finished_at.isoformat() if result.finished_at else None,
        "prompt_tokens": int(usage.prompt_tokens),
        "completion_tokens": int(usage.completion_tokens),
        "calls": int(usage.calls),
        "cost": cost,
    }
    return row | {"sum": _sum(row)}


def read_row(row: sqlite3.Row) -> TaskRow | None:
    """A row as it was written, its columns those of `TaskRow` and the checksum; None if it is damaged."""
    task, *columns, kept = row
    if row_checksum(columns) != kept:
        return None
    name, place, fingerprint, status, cut, stop_reason, error_kind, team, *numbers = columns
    texts = (read_text(name), place, read_text(fingerprint), status, bool(cut), stop_reason, error_kind)
    return TaskRow(task, *texts, None if team is None else read_text(team), *numbers)


def read_earlier(row: sqlite3.Row) -> EarlierTask | None:
    """The same, as far as a later life needs it: there may be a hundred thousand of them before its first task starts."""
    _, *columns, kept = row
    if row_checksum(columns) != kept:
        return None
    name, _, fingerprint, status, cut = columns[:5]
    return EarlierTask(name=read_text(name), fingerprint=read_text(fingerprint), status=status, cut=bool(cut))


def _sum(row: Mapping[str, Any]) -> int:
    return row_checksum([row[name] for name in _SUMMED])

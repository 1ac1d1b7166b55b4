"""What a run gives back: one result for each task, and all of them together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from html import escape
from pathlib import Path
from typing import Any, overload

from ag2_parallel.errors import RunFailedError
from ag2_parallel.redaction import masked_text
from ag2_parallel.usage import Usage


class TaskStatus(StrEnum):
    """How a task ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


ERROR_KINDS = frozenset({
    "configuration", "authentication", "rate_limit", "quota", "context_length", "content_filter", "timeout",
    "connection", "provider", "invalid_answer", "rejected", "tool", "human_input", "budget", "shared_agent",
    "worker_crashed", "not_serializable", "uncertain", "stopped", "agent",
})  # fmt: skip
"""Every value that `TaskError.kind` may have."""

PERMANENT_KINDS = frozenset({
    "configuration", "authentication", "quota", "context_length", "content_filter", "budget", "human_input",
    "shared_agent", "not_serializable", "uncertain", "stopped",
})  # fmt: skip
"""Kinds that another attempt of the task cannot mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    """Why a task, or one attempt of it, did not succeed: plain text that crosses threads and files.

    Attributes:
        type: Name of the exception's class.
        message: What it said, keys masked.
        kind: The cause, one of `ERROR_KINDS`.
        retryable: Whether another attempt may end differently.
        traceback: The traceback as text, keys masked; empty where there was no exception.
        status_code: HTTP status of the model server's answer, where there was one.
        retry_after: Seconds the model server asked to wait, where it did.
        agent: Name of the agent it happened in, where known.
        tool: Name of the tool it happened in, where known.
    """

    type: str
    message: str
    kind: str = "agent"
    retryable: bool = True
    traceback: str = field(default="", repr=False)
    status_code: int | None = None
    retry_after: float | None = None
    agent: str | None = None
    tool: str | None = None

    def __str__(self) -> str:
        """Type and message in one line."""
        return f"{self.type}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt of a task.

    Attributes:
        number: From 1.
        status: How it ended, in the words of `TaskStatus`.
        duration: Seconds from its start until it was decided.
        error: Why it did not succeed.
        ended: How its code came to an end: `returned`, `unwound`, `cut`, `abandoned`, `killed` or `stopping`.
    """

    number: int
    status: TaskStatus
    duration: float
    error: TaskError | None = None
    ended: str = "returned"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        return plain | {"status": str(self.status), "error": self.error.to_dict() if self.error else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelTaskResult:
    """What became of one task.

    Attributes:
        name: The task's name.
        index: Its place in the input, from 0.
        status: How it ended.
        output: The chat's summary, the validated `output_type`, or what `run` returned.
        summary: The chat's summary as text.
        chat_history: The whole transcript, also of a task that did not succeed.
        context: The agents' context variables at the end, or the task's own `context`.
        last_speaker: Name of the agent that spoke last.
        stop_reason: Why the task ended, such as `answered`, `max_turns`, `deadline` or `error`.
        ended: How its last attempt's code came to an end: `returned`, `unwound`, `cut`, `abandoned`,
            `killed`, or `stopping` in a streamed result that was published before that was known;
            None where it never started.
        usage: Tokens, calls and cost of all its attempts.
        error: Why it did not succeed.
        attempts: How many attempts it had.
        attempt_log: One record for each of them.
        queued: Seconds from the moment the task was read until it started, or was settled without.
        duration: Seconds from its start until it was settled, backoff included.
        waited: Seconds of that spent waiting for limits and for model calls to be tried again.
        started_at: When it started, in UTC; None where it never did.
        finished_at: When it was settled, in UTC.
        console: What AG2 and, where captured, the task's own code printed.
        metadata: The task's `metadata`.
        group: The task's `group`.
        directory: The task's own folder, where it used one.
        replayed_calls: Model calls answered from a recording.
    """

    name: str
    index: int
    status: TaskStatus
    output: Any = None
    summary: str | None = None
    chat_history: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    context: Mapping[str, Any] = field(default_factory=dict, repr=False)
    last_speaker: str | None = None
    stop_reason: str | None = None
    ended: str | None = None
    usage: Usage = field(default_factory=Usage, repr=False)
    error: TaskError | None = None
    attempts: int = 0
    attempt_log: Sequence[AttemptRecord] = field(default=(), repr=False)
    queued: float = 0.0
    duration: float = 0.0
    waited: float = 0.0
    started_at: Any = None
    finished_at: Any = None
    console: str = field(default="", repr=False)
    metadata: Any = field(default=None, repr=False)
    group: str | None = None
    directory: Path | None = None
    replayed_calls: int = 0

    @property
    def ok(self) -> bool:
        """Whether the task succeeded."""
        return self.status is TaskStatus.SUCCEEDED

    success = ok

    def __repr__(self) -> str:
        """The main facts in one line, long text cut, keys masked."""
        told = f"output={_preview(self.output)}" if self.ok else f"error={_preview(str(self.error or self.stop_reason))}"
        return f"ParallelTaskResult({self.name!r}, {self.status}, {told}, duration={self.duration:.2f})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; what it cannot hold is shown as text."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        plain["status"] = str(self.status)
        plain["usage"] = self.usage.to_dict()
        plain["error"] = self.error.to_dict() if self.error else None
        plain["attempt_log"] = [record.to_dict() for record in self.attempt_log]
        for name in ("started_at", "finished_at"):
            plain[name] = plain[name].isoformat() if plain[name] else None
        return {name: _plain(value) for name, value in plain.items()}


class RunResults(Mapping[str, ParallelTaskResult]):
    """The results of a run: a mapping from task name to result, in input order.

    `results[0]` and slices work as well. With `handle_errors="ignore"` only the succeeded tasks are
    in the mapping; the others are in `ignored`.

    Attributes:
        run_id: The run's name.
        stop_reason: Why the run ended early, or None.
        ignored: What `handle_errors="ignore"` left out.
        metrics: Numbers of the whole run: `wall`, `task_seconds`, `longest`, `speedup`, `success_rate`,
            `concurrency`, `waited`, `abandoned`, `model_calls`, `engine_lag_max`.
    """

    def __init__(
        self,
        results: Sequence[ParallelTaskResult],
        *,
        run_id: str,
        stop_reason: str | None = None,
        metrics: Mapping[str, Any] | None = None,
        ignore_failures: bool = False,
    ) -> None:
        """Take the results of every task in any order."""
        self._all = sorted(results, key=lambda result: result.index)
        self.ignored = [result for result in self._all if not result.ok] if ignore_failures else []
        shown = [result for result in self._all if result.ok] if ignore_failures else self._all
        self._by_name = {result.name: result for result in shown}
        self._list = shown
        self.run_id = run_id
        self.stop_reason = stop_reason
        self.metrics = dict(metrics or {})

    @overload
    def __getitem__(self, key: str | int) -> ParallelTaskResult: ...

    @overload
    def __getitem__(self, key: slice) -> list[ParallelTaskResult]: ...

    def __getitem__(self, key: str | int | slice) -> ParallelTaskResult | list[ParallelTaskResult]:
        """By name, by position in input order, or a slice of positions."""
        return self._by_name[key] if isinstance(key, str) else self._list[key]

    def __iter__(self) -> Iterator[str]:
        """The names in input order."""
        return iter(self._by_name)

    def __len__(self) -> int:
        """How many results there are, the ignored not counted."""
        return len(self._list)

    def _with(self, status: TaskStatus) -> list[ParallelTaskResult]:
        return [result for result in self._list if result.status is status]

    @property
    def succeeded(self) -> list[ParallelTaskResult]:
        """Results of the tasks that succeeded."""
        return self._with(TaskStatus.SUCCEEDED)

    @property
    def failed(self) -> list[ParallelTaskResult]:
        """Results of the tasks that failed by themselves."""
        return self._with(TaskStatus.FAILED)

    @property
    def timed_out(self) -> list[ParallelTaskResult]:
        """Results of the tasks that were stopped by a time limit of their own."""
        return self._with(TaskStatus.TIMED_OUT)

    @property
    def cancelled(self) -> list[ParallelTaskResult]:
        """Results of the tasks that were stopped because the run was."""
        return self._with(TaskStatus.CANCELLED)

    @property
    def skipped(self) -> list[ParallelTaskResult]:
        """Results of the tasks that never started."""
        return self._with(TaskStatus.SKIPPED)

    @property
    def ok(self) -> bool:
        """Whether every task succeeded, the ignored ones counted."""
        return all(result.ok for result in self._all)

    @property
    def errors(self) -> dict[str, TaskError]:
        """Errors by task name, those of ignored tasks included."""
        return {result.name: result.error for result in self._all if result.error is not None}

    @property
    def usage(self) -> Usage:
        """Tokens, calls and cost of all tasks together."""
        return Usage.total(result.usage for result in self._all)

    def raise_for_failures(self) -> None:
        """Raise `RunFailedError` if any task did not succeed."""
        bad = [result for result in self._all if not result.ok]
        if bad:
            raise RunFailedError(failure_message(bad, len(self._all)), self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "run_id": self.run_id,
            "stop_reason": self.stop_reason,
            "metrics": _plain(self.metrics),
            "usage": self.usage.to_dict(),
            "results": [result.to_dict() for result in self._all],
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON text, written to `path` for its owner alone where one is given."""
        text = json.dumps(self.to_dict(), indent=2)
        if path is not None:
            target = Path(path)
            target.touch(mode=0o600)
            target.write_text(text + "\n", encoding="utf-8")
        return text

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row for each task."""
        try:
            import pandas as pd
        except ImportError as error:
            from ag2_parallel.errors import MissingExtraError

            raise MissingExtraError("to_pandas needs pandas: pip install pandas") from error
        return pd.DataFrame([result.to_dict() for result in self._all])

    def __repr__(self) -> str:
        """Counts by status."""
        counts = ", ".join(f"{len(found)} {status}" for status in TaskStatus if (found := self._with(status)))
        ignored = f", {len(self.ignored)} ignored" if self.ignored else ""
        stopped = f", stopped: {self.stop_reason}" if self.stop_reason else ""
        return f"RunResults({counts or 'empty'}{ignored}{stopped})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(masked_text(result.name))}</td><td>{result.status}</td><td>{result.duration:.2f} s</td>"
            f"<td>{escape(_preview(result.output if result.ok else result.error))}</td></tr>"
            for result in self._list[:200]
        )
        head = "<tr><th>task</th><th>status</th><th>duration</th><th>output or error</th></tr>"
        more = f"<p>and {len(self._list) - 200} more</p>" if len(self._list) > 200 else ""
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>{more}"


def failure_message(bad: Sequence[ParallelTaskResult], total: int) -> str:
    """One sentence for the count and one line for each of the first failures."""
    lines = [f"{len(bad)} of {total} tasks did not succeed:"]
    lines += [f"  - {result.name} ({result.status}): {result.error or result.stop_reason}" for result in bad[:10]]
    if len(bad) > 10:
        lines.append(f"  - and {len(bad) - 10} more; see .errors")
    return "\n".join(lines)


def _preview(value: object, limit: int = 80) -> str:
    text = masked_text(repr(value) if not isinstance(value, str) else value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return masked_text(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _plain(value.model_dump(mode="json"))
    return masked_text(str(value))

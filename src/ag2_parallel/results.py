"""What a run gives back: one result for each task, and all of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.redaction import Redactor, masked_text
from ag2_parallel.spans import Span
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable


class TaskStatus(StrEnum):
    """How a task ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    """Why a task, or one attempt of it, did not succeed: plain text that crosses threads and files.

    Attributes:
        type: Name of the exception's class.
        message: What it said, keys masked.
        kind: The cause, one of `error_kinds.ERROR_KINDS`.
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

    def to_dict(self, mask: Callable[[str], str] = str) -> dict[str, Any]:
        """Plain data; `mask` hides the secrets of a text."""
        shown = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: plain(value, mask) if name != "kind" else value for name, value in shown.items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TaskError:
        """The error that `to_dict` described."""
        return cls(**_known(cls, plain))


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

    def to_dict(self, mask: Callable[[str], str] = str) -> dict[str, Any]:
        """Plain data; `mask` hides the secrets of a text."""
        plain = {name: getattr(self, name) for name in _OF_AN_ATTEMPT}
        return plain | {"status": str(self.status), "error": self.error.to_dict(mask) if self.error else None}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AttemptRecord:
        """The record that `to_dict` described."""
        error = plain.get("error")
        status, error = TaskStatus(plain["status"]), TaskError.from_dict(error) if error else None
        return cls(**{**_known(cls, plain), "status": status, "error": error})


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
        trace: What happened in it and when: its attempts, model calls, tools and waits, the 2,000 longest.
        dropped_spans: How many shorter ones are not in `trace`.
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
    trace: Sequence[Span] = field(default=(), repr=False)
    dropped_spans: int = field(default=0, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the task succeeded."""
        return self.status is TaskStatus.SUCCEEDED

    success = ok

    def __repr__(self) -> str:
        """The main facts in one line, long text cut, keys masked."""
        told = f"output={preview(self.output)}" if self.ok else f"error={preview(str(self.error or self.stop_reason))}"
        return f"ParallelTaskResult({self.name!r}, {self.status}, {told}, duration={self.duration:.2f})"

    def to_dict(self, mask: Callable[[str], str] = masked_text) -> dict[str, Any]:
        """Plain data that JSON can hold; what it cannot hold is shown as text. `mask` hides the secrets of a text.

        It is asked about texts of tasks, agents and models alone: whatever it does, the data is that of a result.
        """
        if mask is masked_text:
            own = Redactor()
            own.learn_data((self.metadata, self.context))
            mask = own.text
        shown = {name: getattr(self, name) for name in _SHOWN_FIRST}
        shown |= {name: plain(shown[name], mask) for name in _TEXTS}
        shown["status"] = str(self.status)
        shown["usage"] = self.usage.to_dict(mask)
        shown["error"] = self.error.to_dict(mask) if self.error else None
        shown["attempt_log"] = [record.to_dict(mask) for record in self.attempt_log]
        for name in ("started_at", "finished_at"):
            shown[name] = shown[name].isoformat() if shown[name] else None
        shown["trace"] = [span.masked(mask).to_dict() for span in self.trace]
        return shown

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ParallelTaskResult:
        """The result that `to_dict` described; what was shown as text, such as an `output` of your own class, stays text.

        Raises:
            ValueError: If it is no result; says what is wrong.
        """
        try:
            return cls(**_known(cls, plain) | _revived(plain))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not a task's result: {type(error).__name__}: {error}") from error


def _revived(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a result that are more than plain data."""
    error, directory = plain.get("error"), plain.get("directory")
    attempts: Iterable[Any] = plain.get("attempt_log") or ()
    spans: Iterable[Any] = plain.get("trace") or ()
    return {
        "status": TaskStatus(plain["status"]),
        "usage": Usage.from_dict(plain.get("usage") or {}),
        "error": TaskError.from_dict(error) if error else None,
        "attempt_log": tuple(AttemptRecord.from_dict(record) for record in attempts),
        "chat_history": tuple(plain.get("chat_history") or ()),
        "trace": tuple(Span.from_dict(span) for span in spans),
        "directory": Path(directory) if directory else None,
        "started_at": _moment(plain.get("started_at")),
        "finished_at": _moment(plain.get("finished_at")),
    }


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _known(cls: Any, plain: Mapping[str, Any]) -> dict[str, Any]:
    """The items that are fields of the class: a newer version may have written more."""
    names = _field_names(cls)
    return {name: value for name, value in plain.items() if name in names}


@cache
def _field_names(cls: Any) -> frozenset[str]:
    return frozenset(item.name for item in fields(cls))


_SHOWN_FIRST: Final = tuple(item.name for item in fields(ParallelTaskResult) if item.name != "trace")
_OF_AN_ATTEMPT: Final = tuple(item.name for item in fields(AttemptRecord))
_TEXTS = (
    "name", "output", "summary", "chat_history", "context", "last_speaker", "console", "metadata", "group", "directory",
)  # fmt: skip
"""The fields of a result with texts of its task, its agents and models."""

_DEEPEST = 100
_MOST_BITS = 10_000
"""Python reads no number of more than 4,300 decimal digits from a text."""


def preview(value: object, limit: int = 80) -> str:
    """The start of a value as text, keys masked."""
    text = masked_text(repr(value) if not isinstance(value, str) else value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def plain(value: Any, mask: Callable[[str], str] = masked_text, above: tuple[int, ...] = ()) -> Any:
    """The value as data that JSON can hold, texts masked; what it cannot hold is shown as text."""
    if type(value) is str or value is None or isinstance(value, bool | int | float | str):
        if type(value) is int and value.bit_length() > _MOST_BITS:
            value = hex(value)
        return mask(value) if isinstance(value, str) else value
    if type(value) is not dict and type(value) is not list:
        if hasattr(value, "model_dump") and not isinstance(value, type):
            value = value.model_dump(mode="json")
        if not isinstance(value, Mapping | list | tuple | set | frozenset):
            return mask(str(value))
    if id(value) in above or len(above) > _DEEPEST:
        return "…"  # a circle, or nested beyond what anybody reads
    above = (*above, id(value))
    if type(value) is dict or isinstance(value, Mapping):
        return {mask(str(key)): plain(item, mask, above) for key, item in value.items()}
    return [plain(item, mask, above) for item in value]

"""In a child: from what an attempt has to messages for the parent."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ag2_parallel.backends import wire
from ag2_parallel.backends.crossing import Left, NewSpans, packed_answer, packed_left
from ag2_parallel.errors import NotSerializableError
from ag2_parallel.redaction import masked_text
from ag2_parallel.results import TaskError, plain
from ag2_parallel.spans import UNFINISHED
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.events import Event
    from ag2_parallel.ports import AttemptOutcome, Snapshot

_AS_IT_IS: Final = (str, int, float, bool, type(None), Usage, datetime)


class Sends(Protocol):
    """The wire, as far as it is needed here."""

    def send(self, message: object, /) -> None:
        """Send a message, or what a function makes of it on the writing thread."""


class Account:
    """What the parent knows of an attempt. Its methods run on the writing thread, one after another."""

    def __init__(
        self, key: wire.Key, task: str, snapshot: Callable[[], Snapshot], mask: Callable[[str], str] = masked_text
    ) -> None:
        """`snapshot` says what the attempt has; from any thread. `mask` hides the secrets of a text."""
        self._key = key
        self._mask = mask
        self._task = task
        self._snapshot = snapshot
        self._sent: tuple[object, ...] = ()
        self._messages = 0
        self._texts = 0
        self._spans = 0

    def news(self) -> wire.Progress | None:
        """What is new; None: nothing."""
        now = self._snapshot()
        draft = now.draft
        state = (
            len(draft.chat_history), len(draft.console), draft.last_speaker, draft.summary, draft.agent, draft.tool,
            now.usage, now.directory, now.waited, len(now.spans.kept),
        )  # fmt: skip
        if state == self._sent:
            return None
        self._sent = state
        return self._progress(now)

    def end(self, outcome: AttemptOutcome) -> wire.Ended:
        """The attempt is over."""
        error, answer = outcome.error, None
        if outcome.answer is not None:
            try:
                answer = packed_answer(self._task, outcome.answer)
            except NotSerializableError as obstacle:
                error = not_serializable(self._mask(str(obstacle)))
        progress = self._progress(self._snapshot())
        return wire.Ended(progress, outcome.ended, answer, None if error is None else plain_error(error))

    def _progress(self, now: Snapshot) -> wire.Progress:
        draft = now.draft
        messages, texts = draft.chat_history[self._messages :], draft.console[self._texts :]
        self._messages += len(messages)
        self._texts += len(texts)
        spans = self._new_spans(now)
        left = Left(messages, texts, draft.context, draft.last_speaker, draft.summary, draft.agent, draft.tool, spans)
        return wire.Progress(self._key, packed_left(left), now.usage, now.waited, now.directory)

    def _new_spans(self, now: Snapshot) -> NewSpans:
        ended = tuple(span for span in now.spans.kept if span.detail != UNFINISHED)
        anew = len(ended) < self._spans  # the shorter ones were forgotten
        new, self._spans = ended if anew else ended[self._spans :], len(ended)
        return NewSpans(new, anew, now.spans.kept[len(ended) :], now.spans.dropped)


class Listener:
    """`ports.BackendListener` that tells the parent."""

    def __init__(
        self,
        run: str,
        link: Sends,
        ended: Callable[[wire.Key, AttemptOutcome], None],
        news: Callable[[wire.Key], None],
    ) -> None:
        """`ended` is told of each attempt that has come to its end; `news` sends what one has that is new."""
        self._run = run
        self._link = link
        self._ended = ended
        self._news = news

    def attempt_ended(self, index: int, attempt: int, outcome: AttemptOutcome) -> None:
        """See `ports.BackendListener`."""
        self._ended(wire.Key(self._run, index, attempt), outcome)

    def attempt_cut_off(self, index: int, attempt: int, error: TaskError) -> None:
        """See `ports.BackendListener`."""
        key = wire.Key(self._run, index, attempt)
        self._news(key)  # its result is made when the parent hears of it
        self._link.send(wire.CutOff(key, plain_error(error)))

    def attempt_alive(self, index: int, attempt: int) -> None:
        """See `ports.BackendListener`."""
        self._link.send(wire.LifeSign(wire.Key(self._run, index, attempt)))

    def attempt_waiting(self, index: int, attempt: int, *, waiting: bool, on_person: bool) -> None:
        """See `ports.BackendListener`."""
        self._link.send(wire.Waits(wire.Key(self._run, index, attempt), waiting, on_person))


def emitter(run: str, link: Sends) -> Callable[..., None]:
    """What tells the parent of events."""

    def emit(event: type[Event], **fields: Any) -> None:
        fields.setdefault("at", datetime.now(UTC))
        link.send(partial(_happened, run, event.__name__, fields))

    return emit


def _happened(run: str, event: str, fields: dict[str, Any]) -> wire.Happened:
    told = {name: value if type(value) in _AS_IT_IS else plain(value) for name, value in fields.items()}
    return wire.Happened(run, event, told)


class LogForwarder(logging.Handler):
    """Sends this package's log records to the parent, where its loggers are set up."""

    def __init__(self, link: Sends) -> None:
        """Of every level that its logger lets through."""
        super().__init__()
        self._link = link

    def emit(self, record: logging.LogRecord) -> None:
        """Send one."""
        try:
            self._send(record)
        except Exception:  # as every handler does: whoever logs is not held up by what he logged
            self.handleError(record)

    def _send(self, record: logging.LogRecord) -> None:
        task, attempt = getattr(record, "task", None), getattr(record, "attempt", None)
        text = record.getMessage()
        if record.exc_info:
            text = masked_text(f"{text}\n{logging.Formatter().formatException(record.exc_info)}")
        self._link.send(wire.Logged(record.name, record.levelno, text, None if task is None else str(task), attempt))


def not_serializable(message: str) -> TaskError:
    """As an attempt's error."""
    return TaskError(type="NotSerializableError", message=message, kind="not_serializable", retryable=False)


def plain_error(error: TaskError) -> TaskError:
    """The error of nothing but Python's own values; a subclass of one would be refused at the other end."""

    def text(value: str | None) -> str | None:
        return None if value is None else "".join(value)

    return TaskError(
        type="".join(error.type),
        message="".join(error.message),
        kind="".join(error.kind),
        retryable=bool(error.retryable),
        traceback="".join(error.traceback),
        status_code=None if error.status_code is None else int(error.status_code),
        retry_after=None if error.retry_after is None else float(error.retry_after),
        agent=text(error.agent),
        tool=text(error.tool),
    )

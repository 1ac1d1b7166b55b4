"""Attempts in worker processes, as the parent knows them."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ag2_parallel.ports import Draft, Snapshot
from ag2_parallel.results import TaskError
from ag2_parallel.spans import Spans
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ag2_parallel.backends.crossing import Left
    from ag2_parallel.backends.wire import Key, Progress
    from ag2_parallel.ports import AttemptOrder
    from ag2_parallel.records import CallTape
    from ag2_parallel.spans import Span


@dataclass(slots=True, eq=False)
class Flight:
    """One attempt: its order, and a mirror of what it has.

    Attributes:
        key: Names it.
        order: What was to be done.
        draft: What it has left so far; behind what it really has by a moment.
        tape: Its recorded model calls, where calls are recorded.
        usage: Of its calls.
        waited: Seconds.
        directory: The task's folder, once it was used.
        spans: What happened in it.
        stopped: Whether it was told to stop.
        stuck: Whether it did not end when that was insisted on.
        sent: How many processes it was sent to.
    """

    key: Key
    order: AttemptOrder
    draft: Draft
    tape: CallTape | None = None
    usage: Usage = field(default_factory=Usage)
    waited: float = 0.0
    directory: str | None = None
    spans: Spans = field(default_factory=Spans)
    stopped: bool = False
    stuck: bool = False
    sent: int = 0
    _ended: tuple[Span, ...] = ()
    _on_stop: list[Callable[[], None]] = field(default_factory=list)

    def stop(self) -> None:
        """It is told to stop."""
        self.stopped = True
        for callback in self._on_stop[:]:
            callback()

    @contextmanager
    def on_stop(self, callback: Callable[[], None]) -> Iterator[None]:
        """While inside, call `callback` when it is told to stop; at once if it was. It may be called twice."""
        self._on_stop.append(callback)
        if self.stopped:
            callback()
        try:
            yield
        finally:
            self._on_stop.remove(callback)

    @property
    def name(self) -> str:
        """The task's."""
        return self.order.task.name

    def learn(self, progress: Progress, left: Left | None) -> None:
        """Take what is new."""
        self.usage, self.waited, self.directory = progress.usage, progress.waited, progress.directory
        if left is None:
            return
        draft = self.draft
        draft.chat_history.extend(left.chat_history)
        for text in left.console:
            draft.console.append(text)  # one by one: the console may show it as it comes
        before = () if left.spans.anew else self._ended
        self._ended = (*before, *left.spans.ended)
        self.spans = Spans((*self._ended, *left.spans.unfinished), left.spans.dropped)
        draft.context, draft.summary = left.context, left.summary
        draft.last_speaker, draft.agent, draft.tool = left.last_speaker, left.agent, left.tool

    def snapshot(self) -> Snapshot:
        """What it has."""
        return Snapshot(
            draft=self.draft, usage=self.usage, waited=self.waited, directory=self.directory, spans=self.spans
        )

    def lost(self, why: str, *, others: int, before: int, again: bool) -> TaskError:
        """The error of an attempt whose process ended: for which of `others` and itself is not known.

        Args:
            why: What became of the process.
            others: How many other attempts ran in it.
            before: How many processes it was lost with before.
            again: Whether it runs again.
        """
        along = f", with {others} other task{'s' if others > 1 else ''} in it" if others else ""
        then = "; it runs again, alone in a process" if again else ""
        if before:
            then = f"; that was process number {before + 1} that went down with this task, so it is not run again"
        return TaskError(
            type="WorkerCrashedError",
            message=f'task "{self.name}": its worker process {why}{along}{then}',
            kind="worker_crashed",
            agent=self.draft.agent,
            tool=self.draft.tool,
        )


def exit_in_words(code: int) -> str:
    """What became of a process, from its exit code; negative ones are signals."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = f" ({signal.Signals(-code).name})"
    except ValueError:
        name = ""
    return f"was killed by signal {-code}{name}"

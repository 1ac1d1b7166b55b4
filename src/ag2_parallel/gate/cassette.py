"""A run's cassette: recorded at the wire, below the tries of a call, or played in place of the wire."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ag2_parallel.cassettes import Record
from ag2_parallel.errors import TaskStopped
from ag2_parallel.events import RunWarning
from ag2_parallel.gate.cassette_file import CassetteWriter, Exchange, read_cassette
from ag2_parallel.gate.cassette_miss import miss
from ag2_parallel.gate.digest import Inquiry, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ag2_parallel.async_ports import ForeignRecord
    from ag2_parallel.cassettes import Replay
    from ag2_parallel.gate.attempt_side import AttemptSide
    from ag2_parallel.gate.wire import Sender
    from ag2_parallel.records import CallRecord
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.results import TaskError

T = TypeVar("T")

_log: Final = logging.getLogger("ag2_parallel")

_LOOKED: Final = 0.1
"""Seconds between two looks whether a call that takes as long as it was recorded is still wanted."""


class Cassette(Protocol):
    """What the gate asks of a run's cassette.

    Attributes:
        plays: Whether it answers calls, so that no limit counts.
    """

    plays: bool

    def asked(self, content: Any) -> Inquiry:
        """Name what a request asks; on the thread that asks."""

    def sender(self, inner: Sender, side: AttemptSide, spawn: Callable[[Callable[[], None]], None], /) -> Sender:
        """What an attempt's requests are sent with. `spawn` runs a blocking function on a daemon thread."""

    def foreign(
        self, work: Callable[[], T], asked: Inquiry, record: ForeignRecord[T], failed: Callable[[Exception], TaskError],
        side: AttemptSide,
    ) -> Callable[[], T]:  # fmt: skip
        """What makes a call of another provider's client, on the worker's thread."""

    def foreign_soon(
        self, work: Callable[[], Coroutine[Any, Any, T]], asked: Inquiry, record: ForeignRecord[T],
        failed: Callable[[Exception], TaskError], side: AttemptSide,
    ) -> Callable[[], Coroutine[Any, Any, T]]:  # fmt: skip
        """The same for a client whose calls are coroutines."""

    def scaled(self, seconds: float) -> float:
        """A wait between two tries."""

    def replayed(self, asked: Inquiry, record: CallRecord, side: AttemptSide, place: int) -> None:
        """A call was answered from the journal, its attempt's `place`-th with this request, from 1; on the loop."""

    def go_on(self) -> None:
        """The run had earlier lives: what they recorded is kept, but for the tasks that make calls in this one."""

    def close(self) -> None:
        """The run is over. Blocking."""


def open_cassette(wanted: Record | Replay, redactor: Redactor) -> Cassette:
    """The cassette of a run. Blocking.

    Raises:
        ConfigurationError: Its file cannot be read, or written.
    """
    return Recording(wanted, redactor) if isinstance(wanted, Record) else Playing(wanted, redactor)


class Recording:
    """Writes every exchange down."""

    plays = False

    def __init__(self, wanted: Record, redactor: Redactor) -> None:
        """Open the file."""
        self._redactor = redactor
        self._writer = CassetteWriter(wanted.path, redactor)
        self.put = self._writer.put
        self.go_on = self._writer.go_on
        self.close = self._writer.close

    def asked(self, content: Any) -> Inquiry:
        """See `Cassette`."""
        return _asked(content, self._redactor)

    def sender(self, inner: Sender, side: AttemptSide, _spawn: Callable[[Callable[[], None]], None]) -> Sender:
        """See `Cassette`."""
        from ag2_parallel.gate.cassette_senders import RecordingSender

        return RecordingSender(inner, self, side.task)

    def foreign(
        self, work: Callable[[], T], asked: Inquiry, record: ForeignRecord[T], failed: Callable[[Exception], TaskError],
        side: AttemptSide,
    ) -> Callable[[], T]:  # fmt: skip
        """See `Cassette`."""

        def made() -> T:
            note = _Note(self, asked, side)
            try:
                answer = work()
            except Exception as raised:
                note.failed(failed(raised))
                raise
            note.answered(answer, record)
            return answer

        return made

    def foreign_soon(
        self, work: Callable[[], Coroutine[Any, Any, T]], asked: Inquiry, record: ForeignRecord[T],
        failed: Callable[[Exception], TaskError], side: AttemptSide,
    ) -> Callable[[], Coroutine[Any, Any, T]]:  # fmt: skip
        """See `Cassette`."""

        async def made() -> T:
            note = _Note(self, asked, side)
            try:
                answer = await work()
            except Exception as raised:
                note.failed(failed(raised))
                raise
            note.answered(answer, record)
            return answer

        return made

    def replayed(self, asked: Inquiry, record: CallRecord, side: AttemptSide, place: int) -> None:
        """See `Cassette`."""
        del place
        exchange = Exchange(task=side.task, digest=asked.digest, asked=asked.content, status=record.status)
        exchange.headers = [*record.headers]
        exchange.head_at = record.duration
        exchange.chunks = [(record.duration, record.body)]
        self.put(exchange)

    def scaled(self, seconds: float) -> float:
        """See `Cassette`."""
        return seconds


class _Note:
    """What is written down of one call of another provider's client."""

    def __init__(self, cassette: Recording, asked: Inquiry, side: AttemptSide) -> None:
        """The call begins."""
        self._cassette = cassette
        self._side = side
        self._exchange = Exchange(task=side.task, digest=asked.digest, asked=asked.content)
        self._began = time.monotonic()

    def failed(self, error: TaskError) -> None:
        """It raised."""
        self._exchange.head_at = time.monotonic() - self._began
        names = ("type", "message", "kind", "status_code", "retry_after")
        self._exchange.error = {name: getattr(error, name) for name in names}
        self._cassette.put(self._exchange)

    def answered(self, answer: T, record: ForeignRecord[T]) -> None:
        """It was answered."""
        body = record.dump(answer)
        if body is None:
            message = (
                f'task "{self._side.task}": an answer of type {type(answer).__name__} cannot be stored, and is '
                "missing in the cassette"
            )
            _log.warning("%s", message)
            self._side.owner.emit(RunWarning, message=message)
            return
        self._exchange.head_at = time.monotonic() - self._began
        self._exchange.status = 200
        self._exchange.chunks = [(self._exchange.head_at, body)]
        self._cassette.put(self._exchange)


class RecordedError(Exception):
    """Raised for what a client of another provider raised when it was recorded."""

    def __init__(self, error: dict[str, Any]) -> None:
        """Take over what is known of it."""
        super().__init__(f"{error['type']}: {error['message']}")
        self.kind = error["kind"]
        self.status_code = error["status_code"]
        self.headers = {} if error["retry_after"] is None else {"retry-after": str(error["retry_after"])}


class Playing:
    """Answers from what was recorded: the k-th call with a request gets what came of the k-th. Safe from any thread."""

    plays = True

    def __init__(self, wanted: Replay, redactor: Redactor) -> None:
        """Read the file."""
        self.path = os.fspath(wanted.path)
        self._redactor = redactor
        self._speed = wanted.speed
        self._exchanges = read_cassette(wanted.path)
        self._lock = threading.Lock()
        self._left: dict[str, dict[str, deque[Exchange]]] = defaultdict(dict)
        for each in self._exchanges:
            self._left[each.digest].setdefault(each.task, deque()).append(each)
        self._answered: Counter[tuple[str, str]] = Counter()

    def asked(self, content: Any) -> Inquiry:
        """See `Cassette`."""
        return _asked(content, self._redactor)

    def sender(self, _inner: Sender, side: AttemptSide, spawn: Callable[[Callable[[], None]], None]) -> Sender:
        """See `Cassette`."""
        from ag2_parallel.gate.cassette_senders import PlayingSender

        return PlayingSender(self, side, spawn)

    def take(self, task: str, digest: str) -> Exchange | None:
        """The next exchange of a task with a request; where the task has none, one of another task that is not used."""
        with self._lock:
            by_task = self._left.get(digest, {})
            # Another task's are taken over whole: a refusal and the answer after it belong together.
            if not by_task.get(task) and (other := next((name for name, left in by_task.items() if left), None)):
                by_task[task] = by_task.pop(other)
            left = by_task.get(task)
            taken = left.popleft() if left else None
            if taken is not None and taken.is_answer:
                self._answered[task, digest] += 1
            return taken

    def missed(self, task: str, asked: Inquiry) -> Exception:
        """The error for a call that is not there. Takes its time."""
        return miss(self.path, task, asked.digest, asked.content, self._exchanges)

    def foreign(
        self, work: Callable[[], T], asked: Inquiry, record: ForeignRecord[T], failed: Callable[[Exception], TaskError],
        side: AttemptSide,
    ) -> Callable[[], T]:  # fmt: skip
        """See `Cassette`."""
        del work, failed

        def made() -> T:
            exchange = self._taken(asked, side)
            until = time.monotonic() + self.scaled(exchange.head_at)
            while (left := until - time.monotonic()) > 0:
                side.owner.check_call()
                time.sleep(min(left, _LOOKED))
            return _outcome(exchange, record)

        return made

    def foreign_soon(
        self, work: Callable[[], Coroutine[Any, Any, T]], asked: Inquiry, record: ForeignRecord[T],
        failed: Callable[[Exception], TaskError], side: AttemptSide,
    ) -> Callable[[], Coroutine[Any, Any, T]]:  # fmt: skip
        """See `Cassette`."""
        del work, failed

        async def made() -> T:
            exchange = self._taken(asked, side)
            await asyncio.sleep(self.scaled(exchange.head_at))
            return _outcome(exchange, record)

        return made

    def _taken(self, asked: Inquiry, side: AttemptSide) -> Exchange:
        exchange = self.take(side.task, asked.digest)
        if exchange is None:
            error = self.missed(side.task, asked)
            side.owner.fail(error)
            raise TaskStopped from error
        return exchange

    def scaled(self, seconds: float) -> float:
        """See `Cassette`."""
        return seconds / self._speed if self._speed else 0.0

    def replayed(self, asked: Inquiry, record: CallRecord, side: AttemptSide, place: int) -> None:
        """See `Cassette`."""
        del record
        while self._answered[side.task, asked.digest] < place:  # an earlier life took it
            if self.take(side.task, asked.digest) is None:
                return

    def go_on(self) -> None:
        """See `Cassette`."""

    def close(self) -> None:
        """See `Cassette`."""


def _outcome(exchange: Exchange, record: ForeignRecord[T]) -> T:
    if exchange.error is not None:
        raise RecordedError(exchange.error)
    return record.load(b"".join(chunk for _, chunk in exchange.chunks))


def _asked(content: Any, redactor: Redactor) -> Inquiry:
    """Named by what is left once keys are masked: the same where an answer was stored masked, and came back so."""
    content = redactor.value(content)
    return Inquiry(digest_of(content), content)

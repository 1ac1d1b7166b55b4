"""The one thread that writes a run down: many changes in one transaction, then word to whoever waits for each.

    any thread ── put(change) ──► queue ── up to 512 at once ──► encode · BEGIN IMMEDIATE · apply all · COMMIT ──► done()

What a change stores is encoded before the transaction begins, so that other processes that write the same file wait
for the writing alone. After an error nothing is written any more: `failed` is told once, each change's `lost` too.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import JournalError
from ag2_parallel.journal.trouble import is_locked, journal_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MOST_AT_ONCE: Final = 512
_BYTES_AT_ONCE: Final = 8 * 2**20
"""Encoded bytes after which a batch is closed: memory, and others' waiting for the file, stay small."""

_LOCK_SLICE: Final = 0.25
"""Seconds of each wait for a program that has the file, so that closing is not held up by it."""

_logger = logging.getLogger("ag2_parallel.journal")


@dataclass(slots=True)
class Change:
    """Something to write.

    Attributes:
        apply: Does it, inside the transaction, given what `encode` returned.
        encode: Makes the bytes that are stored; before the transaction.
        done: Called once it is committed, on the writer's thread.
        lost: Called with the reason if it is not written, on the writer's thread or the caller's.
        flush: Whether it has to be on the disk itself when `done` is called, so that the loss of power does not undo it.
    """

    apply: Callable[[sqlite3.Connection, Any], None]
    encode: Callable[[], Any] | None = None
    done: Callable[[], None] | None = None
    lost: Callable[[JournalError], None] | None = None
    flush: bool = False


class Writer:
    """Writes changes in order; `put` is safe from any thread and never blocks."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        failed: Callable[[Exception], None],
        ended: Callable[[], None],
        wait: float,
    ) -> None:
        """Take over a connection; `ended` is called at the very end, when it is closed."""
        self._connection = connection
        self._path = path
        self._failed = failed
        self._ended = ended
        self._wait = wait
        self._queue: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._refused: JournalError | None = None
        self._broken: JournalError | None = None
        self._give_up_at: float | None = None
        self._flushing = False
        self._thread = threading.Thread(target=self._work, name="ag2-parallel-journal", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """How many changes wait."""
        return self._queue.qsize()

    def put(self, change: Change) -> None:
        """Have a change written with the next commit."""
        with self._lock:  # nothing may follow the end mark, or it would wait for ever
            refused = self._refused
            if refused is None:
                self._queue.put(change)
        if refused is not None and change.lost is not None:
            change.lost(refused)

    def close(self, last: Change, wait: float) -> bool:
        """Write what waits and `last`, then end; False if that takes longer than `wait` seconds, and goes on by itself."""
        with self._lock:
            self._give_up_at = monotonic() + wait
            if self._refused is None:
                self._refused = JournalError(f"journal {self._path}: the run is closed")
                self._queue.put(last)
            self._queue.put(None)
        if self._thread is threading.current_thread():
            return False
        self._thread.join(wait)
        return not self._thread.is_alive()

    def _work(self) -> None:
        open_end = True
        try:
            while open_end:
                batch, open_end = self._next_batch()
                self._write(batch)
        finally:
            self._connection.close()
            self._ended()

    def _next_batch(self) -> tuple[list[tuple[Change, Any]], bool]:
        batch: list[tuple[Change, Any]] = []
        size = 0
        change = self._queue.get()
        while change is not None:
            encoded = self._encoded(change)
            batch.append((change, encoded))
            size += _size(encoded)
            if len(batch) >= _MOST_AT_ONCE or size >= _BYTES_AT_ONCE:
                return batch, True
            try:
                change = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _encoded(self, change: Change) -> Any:
        if change.encode is None or self._broken is not None:
            return None
        try:
            return change.encode()
        except BaseException as error:  # a user's `redact` may raise anything, and this thread must not end of it
            self._break(error)
            return None

    def _write(self, batch: list[tuple[Change, Any]]) -> None:
        if not batch:
            return
        broken = self._broken
        if broken is None:
            try:
                self._commit(batch)
            except Exception as error:
                broken = self._break(error)
        for change, _ in batch:
            if broken is None:
                self._call(change.done)
            elif change.lost is not None:
                change.lost(broken)

    def _commit(self, batch: list[tuple[Change, Any]]) -> None:
        self._flush_commits(any(change.flush for change, _ in batch))
        self._begin()
        try:
            for change, encoded in batch:
                change.apply(self._connection, encoded)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _flush_commits(self, wanted: bool) -> None:  # noqa: FBT001
        if wanted != self._flushing:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._flushing = wanted

    def _begin(self) -> None:
        """Wait for other programs, but not for ever, and not past the end of `close`."""
        end = monotonic() + self._wait
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                closing = self._give_up_at
                if not is_locked(error) or monotonic() > (end if closing is None else min(end, closing)):
                    raise
            else:
                return

    def _break(self, error: BaseException) -> JournalError:
        """Write nothing from now on; told once."""
        broken = journal_error(error, self._path)
        with self._lock:
            self._broken = self._refused = broken
        self._call(lambda: self._failed(broken))
        return broken

    def _call(self, function: Callable[[], None] | None) -> None:
        """What a callback raises is nobody's here: the next ones are called all the same."""
        if function is None:
            return
        try:
            function()
        except Exception:
            _logger.exception("a callback of the journal failed")


def _size(encoded: Any) -> int:
    parts = encoded if isinstance(encoded, tuple) else (encoded,)
    return sum(len(part) for part in parts if isinstance(part, bytes))

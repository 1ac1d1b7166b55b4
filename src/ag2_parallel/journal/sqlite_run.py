"""A run that this process holds in an SQLite file."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from ag2_parallel.journal.active_tasks import ActiveTasks
from ag2_parallel.journal.checksums import checksum
from ag2_parallel.journal.codec import encode_event, encode_result, read_text
from ag2_parallel.journal.database import connect
from ag2_parallel.journal.reading import earlier_tasks, read_call, stored_result
from ag2_parallel.journal.receipts import EffectValues, SqliteReceipts
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.tape import CallShelf, Chain, ChainedCall, LiveTape, SqliteTape
from ag2_parallel.journal.task_rows import settled_row
from ag2_parallel.journal.trouble import FILE_ERRORS, journal_error
from ag2_parallel.journal.writer import Change, Writer

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from ag2_parallel.events import Event
    from ag2_parallel.journal.codec import Mask
    from ag2_parallel.journal.run_lock import RunLock
    from ag2_parallel.records import CallRecord, CallTape, EarlierTask, Receipts
    from ag2_parallel.results import ParallelTaskResult

_MOST_WAITING: Final = 10_000
"""Changes that may wait before events are dropped."""

_LOCKED_WAIT: Final = 30.0
"""Seconds that a run waits for another program that has the whole file, before it gives up writing."""

_logger = logging.getLogger("ag2_parallel.journal")

_CLOSE_WAIT: Final = 5.0
_READ_WAIT: Final = 0.5
"""Seconds. Readers need not wait for writers; this is for the moments when the file is recovered or closed."""


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run is, and what is kept of it.

    Attributes:
        path: The file.
        run: The run's number in it.
        life: This life's number in it.
        first: Whether it is the run's first life.
        keep: "all", "summary" or "none".
        calls: Whether model calls are recorded.
        lock: Keeps others away from the run.
    """

    path: Path
    run: int
    life: int
    first: bool
    keep: str
    calls: bool
    lock: RunLock


class SqliteRun:
    """See `records.RunJournal`."""

    def __init__(
        self,
        place: RunPlace,
        *,
        post: Callable[[Callable[[], None]], None],
        failed: Callable[[Exception], None],
        uncertain: str,
        mask: Mask,
        clock: Callable[[], datetime],
    ) -> None:
        """Take over the lock in `place`; it is released at the end of `close`."""
        self._place = place
        self._mask = mask
        self._clock = clock
        self._uncertain = uncertain
        self._reader_lock = Lock()
        self._reader = connect(place.path, wait=_READ_WAIT, read_only=True)
        self._chains = self._earlier_chains()
        self._tapes: dict[str, SqliteTape] = {}
        self._names: dict[int, str] = {}
        self._effect_values = EffectValues(mask)
        self._active = ActiveTasks(place.run, place.life, first=place.first)
        self._dropped_events = 0
        # Waits are cut into slices by the writer, so that closing need not wait for another program.
        connection = connect(place.path, wait=0.25)
        self._writer = Writer(connection, place.path, failed=failed, ended=place.lock.release, wait=_LOCKED_WAIT)
        self._shelf = CallShelf(
            self._writer, self._active, place.life, mask, post, self._read_call, keep_used=place.keep == "all"
        )

    # ---- before the run starts

    def earlier(self) -> Iterator[EarlierTask]:
        """All tasks of earlier lives."""
        return earlier_tasks(self._reading, self._place.path, self._place.run)

    def result(self, name: str) -> ParallelTaskResult | None:
        """The stored result of a task of an earlier life."""
        with self._reading() as db:
            return stored_result(db, self._place.path, self._place.run, name)

    # ---- on the engine loop

    def attempt_started(self, index: int, name: str, fingerprint: str, attempt: int) -> None:
        """An attempt begins."""
        self._names[index] = name
        chain = self._chains.get(name)
        if chain is not None and chain.fingerprint not in {None, fingerprint}:  # a changed task has nothing to replay
            self._give_up_calls(name)
        started = {"number": attempt, "life": self._place.life, "started_at": self._now()}

        def apply(db: sqlite3.Connection, _: None) -> None:
            task = self._active.start(db, name, index, fingerprint)
            db.execute(queries()["start_attempt"], started | {"task": task})

        self._writer.put(Change(apply))

    def attempt_ended(self, index: int, attempt: int, *, cut: bool) -> None:
        """An attempt ended, and its task goes on."""
        name = self._names.get(index)
        if name is None:
            return
        self._tape_ends(name, cut=cut)
        ended = {"number": attempt, "life": self._place.life, "ended_at": self._now(), "cut": int(cut)}

        def apply(db: sqlite3.Connection, _: None) -> None:
            task = self._active.goes_on(db, name, cut=cut)
            db.execute(queries()["end_attempt"], ended | {"task": task})

        self._writer.put(Change(apply))

    def settle(
        self,
        result: ParallelTaskResult,
        fingerprint: str,
        *,
        cut: bool,
        published: Callable[[], None],
        if_none: bool = False,
    ) -> None:
        """Write a result down."""
        place, name = self._place, result.name
        started = self._names.pop(result.index, None) is not None
        if started:
            self._tape_ends(name, cut=cut)
        else:
            cut = cut or name in self._chains  # it never began in this life: what it has is still there to be replayed
        self._chains.pop(name, None)
        self._effect_values.forget(name)
        ended = {"number": result.attempts, "life": place.life, "ended_at": self._now(), "cut": int(cut)}

        def apply(db: sqlite3.Connection, stored: bytes) -> None:
            if if_none and self._active.is_settled(db, name):
                return
            row = settled_row(place.run, place.life, result, fingerprint, cut=cut)
            task = self._active.settle(db, name, row)
            db.execute(queries()["put_result"], {"task": task, "body": stored, "sum": checksum(stored)})
            if started:
                db.execute(queries()["end_attempt"], ended | {"task": task})

        encode = partial(encode_result, result, place.keep, self._mask)
        self._writer.put(Change(apply, encode=encode, done=published))

    def tape(self, index: int, name: str, attempt: int) -> CallTape:  # noqa: ARG002 - the name says which task
        """The calls of an attempt."""
        if not self._place.calls:
            return LiveTape()
        before = self._tapes.get(name)
        if before is not None:
            before.close()
        chain = self._chains.setdefault(name, Chain())
        self._tapes[name] = SqliteTape(self._shelf, chain, name, attempt)
        return self._tapes[name]

    def receipts(self, name: str) -> Receipts:
        """The effects of a task."""
        place = self._place
        return SqliteReceipts(
            self._writer,
            self._active,
            place.path,
            name=name,
            life=place.life,
            uncertain=self._uncertain,
            now=self._now,
            values=self._effect_values,
        )

    def note(self, event: Event) -> None:
        """Keep an event, unless too much waits."""
        if self._place.keep != "all":
            return
        if self._writer.backlog > _MOST_WAITING:
            self._dropped_events += 1
            return
        about = {"life": self._place.life, "at": event.at.isoformat(), "type": event.type}

        def apply(db: sqlite3.Connection, body: bytes) -> None:
            db.execute(queries()["add_event"], about | {"body": body, "sum": checksum(body)})

        self._writer.put(Change(apply, encode=partial(encode_event, event, self._mask)))

    def close(self, stop_reason: str | None, *, wait: float = _CLOSE_WAIT, read_on: bool = False) -> None:
        """Write down that the run ended; release it."""
        ended = {"life": self._place.life, "ended_at": self._now(), "stop_reason": stop_reason}

        def apply(db: sqlite3.Connection, _: None) -> None:
            db.execute(queries()["end_life"], ended)

        if not read_on:
            self.stop_reading()
        self._writer.close(Change(apply), wait)
        if self._dropped_events:
            _logger.warning(
                "journal %s: %s events were not kept, because more came than could be written",
                self._place.path, self._dropped_events,
            )  # fmt: skip

    def stop_reading(self) -> None:
        """Nobody asks for results any more."""
        with self._reader_lock:
            self._reader.close()

    # ----

    def _tape_ends(self, name: str, *, cut: bool) -> None:
        tape = self._tapes.pop(name, None)
        if tape is not None:
            tape.close()
        chain = self._chains.get(name)
        if not cut and chain is not None:
            self._give_up_calls(name)

    def _give_up_calls(self, name: str) -> None:
        if self._chains.pop(name).calls:
            self._shelf.give_up(name)

    def _earlier_chains(self) -> dict[str, Chain]:
        chains: dict[str, Chain] = {}
        with self._reading() as db:
            for name, fingerprint, row, digest in db.execute(queries()["current_calls"], {"run": self._place.run}):
                chain = chains.setdefault(read_text(name), Chain(read_text(fingerprint)))
                chain.calls.append(ChainedCall(read_text(digest), row=row))
        return chains

    def _read_call(self, row: int) -> CallRecord | None:
        """A short read on the engine loop; a call that cannot be read, or is damaged, goes live again."""
        try:
            with self._reader_lock:
                found = self._reader.execute(queries()["read_call"], {"call": row}).fetchone()
        except FILE_ERRORS as error:
            _logger.warning("%s; the call goes live", journal_error(error, self._place.path))
            return None
        return None if found is None else read_call(found)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._reader_lock:
                yield self._reader
        except FILE_ERRORS as error:
            raise journal_error(error, self._place.path) from error

    def _now(self) -> str:
        return self._clock().isoformat()

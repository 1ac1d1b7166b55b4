"""The model calls of the attempts of a run: recorded while they are made, and handed out again after a cut.

A task has at most one chain of calls: those that its attempts made since one last began without any. An attempt that
was cut leaves the chain to the next, which uses what it has: by digest, the k-th use of a digest to its k-th call. At
the first call that is not there, the unused ones are given up, and what is made from then on is appended. So a chain
is what the next attempt would be answered from, however often it is cut, and nothing is copied.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ag2_parallel.journal.checksums import checksum
from ag2_parallel.journal.codec import encode_call, stored_text
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.writer import Change

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from ag2_parallel.journal.active_tasks import ActiveTasks
    from ag2_parallel.journal.codec import Mask
    from ag2_parallel.journal.writer import Writer
    from ag2_parallel.records import CallRecord


@dataclass(slots=True)
class ChainedCall:
    """A call of a chain: its row once it is committed, the record itself before that."""

    digest: str
    row: int | None = None
    record: CallRecord | None = None


@dataclass(slots=True)
class Chain:
    """The calls that a task's next attempt would be answered from, in the order they were made."""

    fingerprint: str | None = None
    calls: list[ChainedCall] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CallShelf:
    """What the tapes of a run share.

    Attributes:
        writer: Writes calls down.
        active: Knows the tasks' rows; on the writer's thread.
        life: This life's number.
        mask: Hides secrets.
        post: Runs a function on the engine loop.
        read: The record of a call's row; None if it is not to be trusted.
        keep_used: Whether calls that no replay will use stay on file.
    """

    writer: Writer
    active: ActiveTasks
    life: int
    mask: Mask
    post: Callable[[Callable[[], None]], None]
    read: Callable[[int], CallRecord | None]
    keep_used: bool

    def give_up(self, name: str) -> None:
        """No replay will use the calls of a task; the next change of the task follows this one."""
        statement = queries()["retire_calls" if self.keep_used else "delete_calls"]

        def apply(db: sqlite3.Connection, _: None) -> None:
            db.execute(statement, {"task": self.active.row(db, name)})

        self.writer.put(Change(apply))

    def give_up_calls(self, calls: Iterable[ChainedCall]) -> None:
        """No replay will use these."""
        statement = queries()["retire_call" if self.keep_used else "delete_call"]
        unused = list(calls)

        def apply(db: sqlite3.Connection, _: None) -> None:
            db.executemany(statement, [{"call": call.row} for call in unused])  # all of them are written by now

        if unused:
            self.writer.put(Change(apply))

    def keep(self, name: str, attempt: int, call: ChainedCall, kept: Callable[[], None]) -> None:
        """Write a call down."""
        record = call.record
        assert record is not None

        def apply(db: sqlite3.Connection, encoded: tuple[bytes, bytes]) -> None:
            about, body = encoded
            row: dict[str, Any] = {"task": self.active.row(db, name), "life": self.life, "attempt": attempt}
            row |= {"digest": stored_text(call.digest), "about": about, "body": body}
            row["sum"] = checksum(row["digest"], about, body)
            call.row = db.execute(queries()["add_call"], row).lastrowid

        def done() -> None:
            call.record = None  # it is on file: no need to hold it
            self.post(kept)

        self.writer.put(Change(apply, encode=lambda: encode_call(record, self.mask), done=done))


class SqliteTape:
    """The calls of one attempt; on the engine loop."""

    def __init__(self, shelf: CallShelf, chain: Chain, name: str, attempt: int) -> None:
        """Begin an attempt that uses what `chain` has."""
        self._shelf = shelf
        self._chain = chain
        self._name = name
        self._attempt = attempt
        self._closed = False
        self._unused: dict[str, deque[ChainedCall]] = defaultdict(deque)
        for call in chain.calls:
            self._unused[call.digest].append(call)
        self._live = not chain.calls

    def find(self, digest: str) -> CallRecord | None:
        """The next unused record of that request; None: from now on everything goes live."""
        if self._live or self._closed:
            return None
        waiting = self._unused.get(digest)
        call = waiting[0] if waiting else None
        record = self._record_of(call) if call is not None else None
        if record is None or waiting is None:
            self._go_live()
            return None
        waiting.popleft()
        return record

    def keep(self, record: CallRecord, kept: Callable[[], None]) -> None:
        """Write a live call down; of an attempt that is over it is not worth it, and `kept` is called at once."""
        if self._closed:
            kept()
            return
        call = ChainedCall(record.digest, record=record)
        self._chain.calls.append(call)
        self._shelf.keep(self._name, self._attempt, call, kept)

    def close(self) -> None:
        """The attempt is over."""
        self._closed = True

    def _record_of(self, call: ChainedCall) -> CallRecord | None:
        record = call.record
        if record is not None or call.row is None:
            return record
        return self._shelf.read(call.row)

    def _go_live(self) -> None:
        self._live = True
        given_up = {id(call) for waiting in self._unused.values() for call in waiting}
        self._unused.clear()
        unused = [call for call in self._chain.calls if id(call) in given_up]
        self._chain.calls = [call for call in self._chain.calls if id(call) not in given_up]
        self._shelf.give_up_calls(unused)


class LiveTape:
    """Finds nothing and writes nothing down."""

    def find(self, _digest: str) -> None:
        """Every call goes live."""

    def keep(self, _record: CallRecord, kept: Callable[[], None]) -> None:
        """There is nothing to wait for."""
        kept()

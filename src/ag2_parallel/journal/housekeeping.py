"""What a journal has: its runs, their tasks, and how to be rid of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import ConfigurationError, JournalLockedError
from ag2_parallel.journal import run_lock
from ag2_parallel.journal.database import connected
from ag2_parallel.journal.reading import result_of, task_of_run, tasks_of_run
from ag2_parallel.journal.sqlite import life_header
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.trouble import FILE_ERRORS, journal_error

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from ag2_parallel.journal.sqlite import SqliteJournal
    from ag2_parallel.journal.task_rows import TaskRow
    from ag2_parallel.results import ParallelTaskResult

UNFINISHED: Final = "unfinished"
"""Stands for the status of tasks that started and did not settle."""

_AT_ONCE: Final = 100
"""Tasks deleted in one transaction: others may write in between."""

_PAGES_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class RunListing:
    """A run in short.

    Attributes:
        run_id: The run.
        number: Its number in the file.
        started_at: When its first life began, ISO 8601 in UTC.
        last_life: When its last life began.
        lives: How many processes have had it.
        ended_at: When its last life ended; None: it goes on, or its process died.
        stop_reason: Why its last life ended early, if it did.
        state: "running": a process has it. "finished": its last life came to its end. "interrupted": neither.
        total: How many tasks its last life had; None where they were read lazily.
        counts: Tasks by status; "unfinished" for those that started and did not settle.
        tokens: Sent and generated, as far as tasks settled.
        calls: Model calls answered, likewise.
        cost: US dollars, likewise; None where a price is unknown.
    """

    run_id: str
    number: int
    started_at: str
    last_life: str
    lives: int
    ended_at: str | None
    stop_reason: str | None
    state: str
    total: int | None
    counts: dict[str, int]
    tokens: int
    calls: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task of a run, with everything that is known of it.

    Attributes:
        row: The task in short.
        result: Its result; None while it has none.
        attempts: Each attempt's life, number, start, end and whether it was cut.
    """

    row: TaskRow
    result: ParallelTaskResult | None
    attempts: list[dict[str, Any]]


def list_runs(store: SqliteJournal) -> list[RunListing]:
    """All runs, the one taken last at the end.

    Raises:
        JournalError: If the file cannot be read.
    """
    with store.reading() as db:
        return [_listing(store, db, row) for row in db.execute(queries()["all_runs"]).fetchall()]


def find_run(store: SqliteJournal, run_id: str | None = None) -> RunListing:
    """One run; None: the one taken last.

    Raises:
        ConfigurationError: If there is no such run; names the nearest.
        JournalError: If the file cannot be read.
    """
    listings = list_runs(store)
    if not listings:
        raise ConfigurationError(f"journal {store.path}: there is no run in it")
    for listing in listings[-1:] if run_id is None else listings:
        if run_id in {None, listing.run_id}:
            return listing
    known = [listing.run_id for listing in listings]
    near = get_close_matches(str(run_id), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the last is {known[-1]!r}"
    raise ConfigurationError(f"journal {store.path}: there is no run {run_id!r} in it; {hint}")


def tasks(store: SqliteJournal, listing: RunListing) -> Iterator[TaskRow]:
    """The tasks of a run in short, in the order they first started or settled; unfinished ones with their calls so far."""
    for row in tasks_of_run(store.reading, store.path, listing.number):
        if row.status is None:
            with store.reading() as db:
                yield _with_calls(db, row)
        else:
            yield row


def find_task(store: SqliteJournal, listing: RunListing, name: str) -> StoredTask:
    """One task of a run.

    Raises:
        ConfigurationError: If the run has no such task; names the nearest.
    """
    with store.reading() as db:
        row = task_of_run(db, store.path, listing.number, name)
        if row is not None:
            result = result_of(db, store.path, row) if row.status is not None else None
            row = _with_calls(db, row) if result is None else row
            attempts = db.execute(queries()["attempts_of_task"], {"task": row.task}).fetchall()
            return StoredTask(row, result, [dict(attempt) for attempt in attempts])
    near = get_close_matches(name, [task.name for task in tasks(store, listing)], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigurationError(f"journal {store.path}: run {listing.run_id!r} has no task {name!r}{hint}")


@dataclass(frozen=True, slots=True)
class Named:
    """What a name means that may be a run's, or that of a task of the run taken last.

    Attributes:
        run: The run of this name; None: there is none.
        last: The run taken last.
        task: Whether that has a task of this name.
    """

    run: RunListing | None
    last: RunListing
    task: bool


def find_named(store: SqliteJournal, name: str) -> Named:
    """A run, or a task of the run taken last.

    Raises:
        ConfigurationError: If neither has this name; names the nearest.
        JournalError: If the file cannot be read.
    """
    last = find_run(store)
    by_name = {listing.run_id: listing for listing in list_runs(store)}
    with store.reading() as db:
        named = Named(by_name.get(name), last, task_of_run(db, store.path, last.number, name) is not None)
    if named.run is not None or named.task:
        return named
    near = get_close_matches(name, [*by_name, *(task.name for task in tasks(store, last))], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    neither = f"there is no run {name!r} in it, and its last run {last.run_id!r} has no task of this name"
    raise ConfigurationError(f"journal {store.path}: {neither}{hint}")


def to_prune(
    listings: Sequence[RunListing],
    *,
    run_ids: Sequence[str] = (),
    older_than: timedelta | None = None,
    keep_last: int | None = None,
    now: datetime,
) -> list[RunListing]:
    """Which runs to delete: those named, or else all that are old enough and not among the last ones.

    Args:
        listings: All runs, the one taken last at the end.
        run_ids: Names; then nothing else counts.
        older_than: Only runs whose last life began so long ago.
        keep_last: So many of the last runs are kept.
        now: The time, in UTC.

    Returns:
        The runs; a run that a process has is never among those that are not named.
    """
    if run_ids:
        return [listing for listing in listings if listing.run_id in run_ids]
    old = listings[: -keep_last or len(listings)] if keep_last is not None else listings
    return [
        listing
        for listing in old
        if listing.state != "running"
        and (older_than is None or now - datetime.fromisoformat(listing.last_life) >= older_than)
    ]


def why_kept(
    listings: Sequence[RunListing], *, older_than: timedelta | None = None, keep_last: int | None = None
) -> list[str]:
    """Why `to_prune` with these rules found nothing: how many runs each of them keeps, in words."""
    last = listings[-keep_last:] if keep_last else []
    others = listings[: len(listings) - len(last)]
    running = sum(listing.state == "running" for listing in others)
    told = []
    if last:
        told.append(f"{len(last)} among the last {keep_last}")
    if running:
        told.append(f"{running} running")
    if older_than is not None and (young := [each for each in others if each.state != "running"]):
        oldest = min(listing.last_life for listing in young)[:16].replace("T", " ")
        told.append(f"{len(young)} not old enough (the oldest was last taken up {oldest} UTC)")
    return told


def prune(store: SqliteJournal, listings: Sequence[RunListing]) -> None:
    """Delete runs and give their room back to the disk; other processes may go on writing other runs.

    Raises:
        JournalLockedError: If a process has one of them; those before it are deleted.
        JournalError: If the file cannot be written.
    """
    store.open()
    try:
        with connected(store.path) as db:
            for listing in listings:
                _delete(store, db, listing)
            while _freed(db):
                pass
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except FILE_ERRORS as error:
        raise journal_error(error, store.path) from error


def _with_calls(db: sqlite3.Connection, row: TaskRow) -> TaskRow:
    """A task that is not settled, with as many calls as were recorded of it."""
    counted = db.execute(queries()["count_calls"], {"task": row.task}).fetchone()
    return replace(row, calls=counted["calls"])


def _delete(store: SqliteJournal, db: sqlite3.Connection, listing: RunListing) -> None:
    lock = run_lock.hold(store.path, listing.number)
    if lock is None:
        raise JournalLockedError(f"journal {store.path}: run {listing.run_id!r} is running; stop it first")
    try:
        for some, delete in (("some_events", "delete_event"), ("some_tasks", "delete_task")):
            while found := db.execute(queries()[some], {"run": listing.number, "count": _AT_ONCE}).fetchall():
                db.execute("BEGIN IMMEDIATE")
                db.executemany(queries()[delete], [dict(row) for row in found])
                db.execute("COMMIT")
        db.execute(queries()["delete_run"], {"run": listing.number})
    finally:
        lock.release()


def _freed(db: sqlite3.Connection) -> bool:
    """Give some free pages back; whether there were any."""
    free = db.execute("PRAGMA freelist_count").fetchone()[0]
    db.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
    return bool(free > db.execute("PRAGMA freelist_count").fetchone()[0])


def _listing(store: SqliteJournal, db: sqlite3.Connection, row: sqlite3.Row) -> RunListing:
    life = db.execute(queries()["latest_life"], {"run": row["run"]}).fetchone()
    counts = db.execute(queries()["counts"], {"run": row["run"]}).fetchall()
    held = run_lock.is_held(store.path, row["run"])
    finished = life["ended_at"] is not None and life["stop_reason"] is None
    unpriced = any(count["unpriced"] for count in counts)
    return RunListing(
        run_id=row["run_id"],
        number=row["run"],
        started_at=row["started_at"],
        last_life=life["started_at"],
        lives=row["lives"],
        ended_at=life["ended_at"],
        stop_reason=life["stop_reason"],
        state="running" if held else "finished" if finished else "interrupted",
        total=life_header(store.path, row["run_id"], life).total,
        counts={count["status"] or UNFINISHED: count["tasks"] for count in counts},
        tokens=sum(count["tokens"] for count in counts),
        calls=sum(count["calls"] for count in counts),
        cost=None if unpriced else sum(count["cost"] or 0.0 for count in counts),
    )

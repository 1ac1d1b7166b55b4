"""Everything of a run as rows of plain data, for other programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ag2_parallel.journal.checksums import checksum
from ag2_parallel.journal.codec import from_json, read_text, unpack
from ag2_parallel.journal.housekeeping import tasks
from ag2_parallel.journal.reading import result_of
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.trouble import damaged
from ag2_parallel.results import ParallelTaskResult, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ag2_parallel.journal.housekeeping import RunListing
    from ag2_parallel.journal.sqlite import SqliteJournal

EXPORT_VERSION: Final = 1
"""Of the rows; it changes when a field goes or means something else, not when one is added."""

Exported: TypeAlias = Literal["tasks", "calls", "events"]

_AT_ONCE: Final = 500


def exported_rows(store: SqliteJournal, listing: RunListing, what: Exported = "tasks") -> Iterator[dict[str, Any]]:
    """The rows of a run, each with `schema` and `run_id`.

    Args:
        store: The journal.
        listing: The run; see `housekeeping.find_run`.
        what: "tasks": results, as `ParallelTaskResult.to_dict`; tasks that are not settled have no status.
            "calls": model calls with their answers. "events": as `Event.to_dict`.

    Raises:
        JournalDamagedError: At the first row that is not what was written.
    """
    rows = {"tasks": _tasks, "calls": _calls, "events": _events}[what](store, listing)
    return ({"schema": EXPORT_VERSION, "run_id": listing.run_id} | row for row in rows)


def _tasks(store: SqliteJournal, listing: RunListing) -> Iterator[dict[str, Any]]:
    for row in tasks(store, listing):
        if row.status is None:
            empty = ParallelTaskResult(name=row.name, index=row.place, status=TaskStatus.CANCELLED)
            yield replace(empty, attempts=row.attempts).to_dict() | {"status": None}
            continue
        with store.reading() as db:
            yield result_of(db, store.path, row).to_dict()


def _calls(store: SqliteJournal, listing: RunListing) -> Iterator[dict[str, Any]]:
    for row in tasks(store, listing):
        with store.reading() as db:
            for call in db.execute(queries()["calls_of_task"], {"task": row.task}):
                if checksum(call["digest"], call["about"], call["body"]) != call["sum"]:
                    raise damaged(store.path, f'a model call of task "{row.name}" is not what was written')
                about = from_json(call["about"]) | {"digest": read_text(call["digest"])}
                body = unpack(call["body"]).decode("utf-8", "replace")
                yield {"task": row.name, "life": call["life"], "attempt": call["attempt"]} | about | {"body": body}


def _events(store: SqliteJournal, listing: RunListing) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        with store.reading() as db:
            bounds = {"run": listing.number, "after": after, "count": _AT_ONCE}
            rows = db.execute(queries()["events_of_run"], bounds).fetchall()
        if not rows:
            return
        for row in rows:
            if checksum(row["body"]) != row["sum"]:
                raise damaged(store.path, "an event is not what was written")
            yield from_json(unpack(row["body"]))
        after = rows[-1]["event"]

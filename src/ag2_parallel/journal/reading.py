"""What is stored, read again: every row against its checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from ag2_parallel.journal.checksums import checksum
from ag2_parallel.journal.codec import decode_call, decode_result, read_text, stored_text
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.task_rows import read_earlier, read_row
from ag2_parallel.journal.trouble import damaged

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ag2_parallel.journal.task_rows import TaskRow
    from ag2_parallel.records import CallRecord, EarlierTask
    from ag2_parallel.results import ParallelTaskResult

T = TypeVar("T")

_AT_ONCE: Final = 500
"""Rows read at a time: memory stays small, and no long reading keeps the write-ahead log from being emptied."""


def tasks_of_run(
    reading: Callable[[], AbstractContextManager[sqlite3.Connection]], path: Path, run: int
) -> Iterator[TaskRow]:
    """All tasks of a run, in the order they first started or settled.

    Raises:
        JournalDamagedError: If a row is not what was written.
    """
    return (_sound(read_row(row), path) for row in _rows(reading, run))


def earlier_tasks(
    reading: Callable[[], AbstractContextManager[sqlite3.Connection]], path: Path, run: int
) -> Iterator[EarlierTask]:
    """The same as a later life of the run needs them."""
    return (_sound(read_earlier(row), path) for row in _rows(reading, run))


def _rows(reading: Callable[[], AbstractContextManager[sqlite3.Connection]], run: int) -> Iterator[sqlite3.Row]:
    after = 0
    while True:
        with reading() as db:
            rows = db.execute(queries()["tasks_of_run"], {"run": run, "after": after, "count": _AT_ONCE}).fetchall()
        if not rows:
            return
        yield from rows
        after = rows[-1]["task"]


def task_of_run(db: sqlite3.Connection, path: Path, run: int, name: str) -> TaskRow | None:
    """One task of a run.

    Raises:
        JournalDamagedError: If its row is not what was written.
    """
    row = db.execute(queries()["task_of_run"], {"run": run, "name": stored_text(name)}).fetchone()
    return None if row is None else _sound(read_row(row), path)


def stored_result(db: sqlite3.Connection, path: Path, run: int, name: str) -> ParallelTaskResult | None:
    """The result of a task; None if it is not settled.

    Raises:
        JournalDamagedError: If it is not what was written.
    """
    task = task_of_run(db, path, run, name)
    return None if task is None or task.status is None else result_of(db, path, task)


def result_of(db: sqlite3.Connection, path: Path, task: TaskRow) -> ParallelTaskResult:
    """The result of a task that is settled; as `stored_result`."""
    row = db.execute(queries()["read_result"], {"task": task.task}).fetchone()
    if row is None or checksum(row["body"]) != row["sum"]:
        raise damaged(path, f'the result of task "{task.name}" is not what was written')
    result = decode_result(row["body"])
    if (result.name, result.status) != (task.name, task.status):
        raise damaged(path, f'the result of task "{task.name}" is another one')
    return result


def read_call(row: sqlite3.Row) -> CallRecord | None:
    """A model call; None if it is damaged."""
    if checksum(row["digest"], row["about"], row["body"]) != row["sum"]:
        return None
    return decode_call(read_text(row["digest"]), row["about"], row["body"])


def _sound(task: T | None, path: Path) -> T:
    if task is None:
        raise damaged(path, "a task's row is not what was written")
    return task

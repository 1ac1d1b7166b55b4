"""The rows of the tasks that a run is busy with, so that they need not be looked up. On the writer's thread only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2_parallel.journal.codec import stored_text
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.task_rows import started_row, unsettled_sum

if TYPE_CHECKING:
    import sqlite3


class ActiveTasks:
    """Knows the row of every task between its first attempt and its result."""

    def __init__(self, run: int, life: int, *, first: bool) -> None:
        """For one life of a run; `first`: there was none before, so no task has a result that must go."""
        self._first = first
        self._run = run
        self._life = life
        self._rows: dict[str, int] = {}
        self._started: dict[str, dict[str, Any]] = {}

    def start(self, db: sqlite3.Connection, name: str, place: int, fingerprint: str) -> int:
        """An attempt of a task begins."""
        row = started_row(self._run, self._life, name, place, fingerprint)
        self._started[name] = row
        self._rows[name] = task = _one(db, "start_task", row)
        if not self._first:
            db.execute(queries()["drop_result"], {"task": task})
        return task

    def goes_on(self, db: sqlite3.Connection, name: str, *, cut: bool) -> int | None:
        """An attempt ended and its task did not; None if it never began."""
        row = self._started.get(name)
        if row is None:
            return None
        task = self._rows[name]
        db.execute(queries()["task_goes_on"], {"task": task, "cut": int(cut), "sum": unsettled_sum(row, cut=cut)})
        return task

    def settle(self, db: sqlite3.Connection, name: str, row: dict[str, Any]) -> int:
        """A task is settled."""
        self._started.pop(name, None)
        self._rows.pop(name, None)
        return _one(db, "settle_task", row)

    def is_settled(self, db: sqlite3.Connection, name: str) -> bool:
        """Whether an earlier life has a result of the task, and none of its attempts began in this one."""
        if self._first or name in self._rows:
            return False
        found = db.execute(queries()["find_task"], {"run": self._run, "name": stored_text(name)}).fetchone()
        return found is not None and found["status"] is not None

    def row(self, db: sqlite3.Connection, name: str) -> int:
        """The row of a task; one that has none yet is given one, as if it had started."""
        known = self._rows.get(name)
        if known is not None:
            return known
        found = db.execute(queries()["find_task"], {"run": self._run, "name": stored_text(name)}).fetchone()
        return int(found["task"]) if found is not None else self.start(db, name, 0, "")


def _one(db: sqlite3.Connection, query: str, row: dict[str, Any]) -> int:
    cursor = db.execute(queries()[query], row)
    task = int(cursor.fetchone()["task"])
    cursor.close()
    return task

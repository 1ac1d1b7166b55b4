"""Runs in an SQLite file."""

from __future__ import annotations

import os
import platform
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ag2_parallel.errors import JournalLockedError
from ag2_parallel.journal import run_lock
from ag2_parallel.journal.checksums import checksum
from ag2_parallel.journal.codec import decode_header, encode_header, read_text
from ag2_parallel.journal.database import connected, open_file
from ag2_parallel.journal.sqlite_run import RunPlace, SqliteRun
from ag2_parallel.journal.statements import queries
from ag2_parallel.journal.trouble import FILE_ERRORS, damaged, journal_error
from ag2_parallel.redaction import masked_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from ag2_parallel.journal.codec import Mask
    from ag2_parallel.journal.run_lock import RunLock
    from ag2_parallel.records import RunHeader


class SqliteJournal:
    """A journal in a file; several processes may write different runs of it at once."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        keep: str = "all",
        *,
        calls: bool = True,
        wait: float = 5.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Nothing is opened or made before it is needed.

        Args:
            path: The file; see `policies.Journal`, as for `keep` and `calls`.
            keep: "all", "summary" or "none".
            calls: Whether model calls are recorded.
            wait: Seconds to wait for another program that has the whole file, when it is opened.
            clock: Gives stamps, in UTC.
        """
        self.path = Path(path)
        self._keep = keep
        self._calls = calls and keep != "none"
        self._wait = wait
        self._clock = clock
        self._checked = False
        self._lock = Lock()

    def open_run(
        self,
        header: RunHeader,
        *,
        post: Callable[[Callable[[], None]], None],
        failed: Callable[[Exception], None],
        uncertain: str = "fail",
        mask: Mask = masked_text,
    ) -> SqliteRun:
        """Take a run for this process; see `records.RunStore`."""
        self.open(create=True)
        place: RunPlace | None = None
        lock: RunLock | None = None
        try:
            with connected(self.path, wait=self._wait) as db:
                db.execute("BEGIN IMMEDIATE")
                run, lock = self._taken(db, header.run_id)
                first = db.execute(queries()["latest_life"], {"run": run}).fetchone() is None
                life = self._new_life(db, run, header, mask)
                db.execute("COMMIT")
            place = RunPlace(self.path, run, life, first, self._keep, self._calls, lock)
            return SqliteRun(place, post=post, failed=failed, uncertain=uncertain, mask=mask, clock=self._clock)
        except BaseException as error:
            if lock is not None:
                lock.release()
            if isinstance(error, FILE_ERRORS):
                raise journal_error(error, self.path) from error
            raise

    def header(self, run_id: str | None = None) -> RunHeader | None:
        """What explains the last life of a run, or of the run taken last; see `records.RunStore`."""
        with self.reading() as db:
            if run_id is None:
                latest = db.execute(queries()["latest_run"]).fetchone()
                run_id = latest["run_id"] if latest is not None else ""
            run = db.execute(queries()["find_run"], {"run_id": run_id}).fetchone()
            life = db.execute(queries()["latest_life"], {"run": run["run"]}).fetchone() if run is not None else None
            return None if life is None else life_header(self.path, str(run_id), life)

    def durations(self, run_id: str | None = None) -> list[tuple[str, str | None, float]]:
        """Name, group and seconds of the tasks that succeeded; see `records.RunStore`."""
        with self.reading() as db:
            run = None
            if run_id is not None:
                found = db.execute(queries()["find_run"], {"run_id": run_id}).fetchone()
                if found is None:
                    return []
                run = found["run"]
            rows = db.execute(queries()["durations"], {"run": run})
            return [
                (read_text(name), None if group is None else read_text(group), seconds) for name, group, seconds in rows
            ]

    def open(self, *, create: bool = False) -> None:
        """Make sure that the file can be used; once.

        Raises:
            JournalError: As `open_run`.
        """
        with self._lock:
            if not self._checked or not self.path.exists():
                open_file(self.path, create=create, wait=self._wait)
                self._checked = True

    @contextmanager
    def reading(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection that only reads, for the length of the block.

        Raises:
            JournalError: As `open_run`, and for errors inside the block.
        """
        self.open(create=create)
        try:
            with connected(self.path, wait=self._wait, read_only=True) as db:
                yield db
        except FILE_ERRORS as error:
            raise journal_error(error, self.path) from error

    def _taken(self, db: sqlite3.Connection, run_id: str) -> tuple[int, RunLock]:
        """The run's number and its lock; inside a transaction, so that whoever is refused finds the holder's life."""
        db.execute(queries()["add_run"], {"run_id": run_id})
        run = int(db.execute(queries()["find_run"], {"run_id": run_id}).fetchone()["run"])
        lock = run_lock.hold(self.path, run)
        if lock is not None:
            return run, lock
        life = db.execute(queries()["latest_life"], {"run": run}).fetchone()
        holder = "somebody" if life is None else f"process {life['pid']} on {life['host']}, since {life['started_at']},"
        here = " (this process)" if life is not None and life["pid"] == os.getpid() else ""
        raise JournalLockedError(
            f"journal {self.path}: {holder}{here} has run {run_id!r}; wait for its end, or stop it, or use another run_id"
        )

    def _new_life(self, db: sqlite3.Connection, run: int, header: RunHeader, mask: Mask) -> int:
        started_at = header.started_at.astimezone(UTC).isoformat()
        encoded = encode_header(header, mask)
        row = {
            "run": run,
            "started_at": started_at,
            "pid": os.getpid(),
            "host": platform.node() or "an unnamed machine",
        }
        row |= {"header": encoded, "sum": checksum(started_at, encoded)}
        life = db.execute(queries()["add_life"], row).lastrowid
        assert life is not None
        return life


def life_header(path: Path, run_id: str, life: sqlite3.Row) -> RunHeader:
    """The header of a life.

    Raises:
        JournalDamagedError: If it is not what was written.
    """
    if checksum(life["started_at"], life["header"]) != life["sum"]:
        raise damaged(path, f"the header of run {run_id!r}")
    return decode_header(run_id, life["started_at"], life["header"])

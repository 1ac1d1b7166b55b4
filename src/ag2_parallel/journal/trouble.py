"""SQLite's errors as errors of a journal that say what happened and what to do."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from ag2_parallel.errors import JournalDamagedError, JournalError, JournalLockedError

if TYPE_CHECKING:
    from pathlib import Path

FILE_ERRORS: Final = (sqlite3.Error, OSError, UnicodeError)
"""What reading or writing a file may raise; the last where damaged text stands in it, or in SQLite's own message."""

_LOCKED: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_REFUSED: Final = {
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH,
}  # fmt: skip


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another connection has the file for itself."""
    return _primary_code(error) in _LOCKED


def journal_error(error: BaseException, path: Path) -> JournalError:
    """The error to raise, or to tell, instead of what SQLite or the system said."""
    if isinstance(error, JournalError):
        return error
    if isinstance(error, UnicodeError):
        return damaged(path, f"text in it cannot be read, {error}")
    told = _told_by_sqlite(error, path) if isinstance(error, sqlite3.Error) else None
    return told or JournalError(f"journal {path}: it cannot be read or written ({type(error).__name__}: {error})")


def _told_by_sqlite(error: sqlite3.Error, path: Path) -> JournalError | None:
    code = _primary_code(error)
    if code in _LOCKED:
        return JournalLockedError(
            f"journal {path}: another program holds the whole file locked ({error}); close it, or use another file"
        )
    if code in _DAMAGED:
        return damaged(path, str(error))
    if code in _REFUSED:
        return JournalError(
            f"journal {path}: it cannot be opened for writing ({error}); "
            "make the file and its folder writable, or use another file"
        )
    if code == sqlite3.SQLITE_FULL:
        return JournalError(f"journal {path}: the disk is full; make room, then resume")
    return None


def damaged(path: Path, what: str) -> JournalDamagedError:
    """The file is there, and is not to be trusted."""
    return JournalDamagedError(
        f"journal {path}: the file is damaged or no journal ({what}); restore it from a copy, or begin a new one"
    )


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF

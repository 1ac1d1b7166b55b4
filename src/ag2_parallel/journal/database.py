"""Opens a journal's file: makes it for its owner alone, or makes sure that it is a sound journal of this version."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from ag2_parallel.errors import JournalError, JournalVersionError
from ag2_parallel.journal.owner_files import make_for_the_owner
from ag2_parallel.journal.statements import split, sql_file
from ag2_parallel.journal.trouble import FILE_ERRORS, damaged, journal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

APPLICATION_ID: Final = 0x41_47_32_50
"""Stands in the file's header and tells a journal from other SQLite files: "AG2P"."""

SCHEMA_VERSION: Final = 1

UPGRADES: Final[Mapping[int, str]] = {}
"""For each version after the first, the file with the statements that lead to it from the one before."""

_PAGE_SIZE: Final = 8192
"""Results are some 10 KB and more: fewer overflow pages than with the default, measured a fifth faster."""

_PAGES_IN_THE_LOG: Final = 4000
"""Pages, 32 MB, after which the log is copied into the file: each time two flushes of the disk."""

_CHECKED_WHOLE: Final = 256 * 2**20
"""Bytes up to which the whole file is checked when it is opened: a tenth of a second for 200 MB. Beyond, and besides,
every row has a checksum that is looked at when it is read."""


def open_file(
    path: Path,
    *,
    create: bool,
    wait: float = 5.0,
    version: int = SCHEMA_VERSION,
    upgrades: Mapping[int, str] | None = None,
) -> None:
    """Make sure that `path` is a journal of this version that can be used; blocking.

    Args:
        path: The file.
        create: Whether a missing or empty file is made into a new journal.
        wait: Seconds to wait for another program that has the whole file.
        version: The version wanted.
        upgrades: Scripts that lead to each version from the one before it; None: those of this package.

    Raises:
        JournalError: It is missing, cannot be opened, is damaged, another program's, or a newer version's.
    """
    _check_path(path, create=create)
    if upgrades is None:
        upgrades = {number: sql_file(name) for number, name in UPGRADES.items()}
    with _translated(path):
        if create:
            make_for_the_owner(path)  # SQLite gives the files beside it the mode of this one, whatever the umask is
        with connected(path, wait=wait) as connection:
            _make_usable(connection, path, version, upgrades, create=create)


def _make_usable(
    connection: sqlite3.Connection, path: Path, version: int, upgrades: Mapping[int, str], *, create: bool
) -> None:
    if create and _is_empty(connection):
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_write_ahead_log(connection, path)
        _in_one_transaction(connection, lambda: _create(connection))
    _check_identity(connection, path, version)
    _use_write_ahead_log(connection, path)
    if path.stat().st_size <= _CHECKED_WHOLE:
        problems = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        if problems != ["ok"]:
            raise damaged(path, str(problems[0]))
    _in_one_transaction(connection, lambda: _upgrade(connection, path, version, upgrades))


def _create(connection: sqlite3.Connection) -> None:
    if not _is_empty(connection):  # another process was faster
        return
    for statement in split(sql_file("schema.sql")):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")


def _check_identity(connection: sqlite3.Connection, path: Path, version: int) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise JournalError(f"journal {path}: the file is another program's database; use another file")
    found = _pragma(connection, "user_version")
    if found > version:
        raise JournalVersionError(
            f"journal {path}: a newer version of ag2-parallel made it (format {found}, this one reads up to {version}); "
            "upgrade ag2-parallel"
        )
    if found < 1:
        raise damaged(path, f"its format is {found}")


def _upgrade(connection: sqlite3.Connection, path: Path, version: int, upgrades: Mapping[int, str]) -> None:
    for number in range(_pragma(connection, "user_version") + 1, version + 1):
        if number not in upgrades:
            raise JournalVersionError(f"journal {path}: nothing leads from format {number - 1} to {number}")
        for statement in split(upgrades[number]):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")


def _check_path(path: Path, *, create: bool) -> None:
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except (OSError, UnicodeError) as error:  # such as a name that is too long, or half of a surrogate pair in it
        raise JournalError(f"journal {path}: there can be no such file ({error})") from error
    if path.is_dir():
        raise JournalError(f"journal {path}: this is a folder; name a file in it")
    if not path.parent.is_dir():
        raise JournalError(f"journal {path}: the folder {path.parent} does not exist; make it first")
    if not create and not path.exists():
        raise JournalError(f"journal {path}: there is no such file")


@contextmanager
def connected(path: Path, *, wait: float = 5.0, read_only: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection that is closed at the end of the block."""
    connection = connect(path, wait=wait, read_only=read_only)
    try:
        yield connection
    finally:
        with suppress(sqlite3.Error):
            connection.close()


def connect(path: Path, *, wait: float = 5.0, read_only: bool = False) -> sqlite3.Connection:
    """A connection that begins no transaction by itself; at most one thread may use it at a time.

    Args:
        path: The file; it must be there.
        wait: Seconds to wait for a program that has the file for itself.
        read_only: Whether statements that change something are refused.
    """
    connection = sqlite3.connect(
        path.absolute(), timeout=wait, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    try:
        # A committed row survives the death of the process with any setting. With NORMAL the loss of power may take the
        # last seconds along, and leaves the file sound; the writer asks for FULL where that is not enough.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_IN_THE_LOG}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = FAST")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise JournalError(
            f"journal {path}: SQLite cannot keep a write-ahead log there (it says {mode!r}); use a file on a local disk"
        )


def _in_one_transaction(connection: sqlite3.Connection, change: Callable[[], None]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        change()
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_empty(connection: sqlite3.Connection) -> bool:
    untouched = _pragma(connection, "application_id") == 0 == _pragma(connection, "user_version")
    return untouched and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except FILE_ERRORS as error:
        raise journal_error(error, path) from error

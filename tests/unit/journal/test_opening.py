"""F36: what is wrong with a file is one clear error before anything starts, and the file is left as it was."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from journal_cases import Opened, result

import ag2_parallel
from ag2_parallel import ConfigurationError, Journal
from ag2_parallel.errors import JournalDamagedError, JournalError, JournalLockedError, JournalVersionError
from ag2_parallel.journal import database
from ag2_parallel.journal.database import open_file
from ag2_parallel.journal.statements import queries, sql_file

pytestmark = pytest.mark.usefixtures("no_threads_left")


def a_journal(path):
    with Opened(path) as run:
        run.attempt("t")
        run.settle(result("t", output="kept", attempts=1))
    return path


def refused(path, kind=JournalError, **options):
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(kind) as raised:
        Opened(path, **options)
    assert type(raised.value) is kind
    assert str(path) in str(raised.value)
    if before is not None:
        assert path.read_bytes() == before
    return str(raised.value)


def test_a_folder_is_no_journal(tmp_path):
    assert "this is a folder" in refused(tmp_path)


def test_a_missing_folder_is_not_made(tmp_path):
    assert f"the folder {tmp_path / 'no'} does not exist" in refused(tmp_path / "no" / "j.db")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "content", [b"x" * 5000, b"SQLite format 3\0" + b"x" * 5000, b"{}\n"], ids=["text", "header", "short"]
)
def test_a_file_that_is_no_database(tmp_path, content):
    (tmp_path / "j.db").write_bytes(content)
    assert "damaged or no journal" in refused(tmp_path / "j.db", JournalDamagedError)


def test_an_empty_file_becomes_a_journal(tmp_path):
    (tmp_path / "j.db").touch()
    a_journal(tmp_path / "j.db")


@pytest.mark.parametrize("application_id", [0, 7])
def test_another_programs_database(tmp_path, application_id):
    with sqlite3.connect(tmp_path / "j.db") as db:
        db.execute("CREATE TABLE cache (key, value)")
        db.execute(f"PRAGMA application_id = {application_id}")
    db.close()
    assert "another program's database" in refused(tmp_path / "j.db")


def test_a_newer_version(tmp_path):
    path = a_journal(tmp_path / "j.db")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert "format 99, this one reads up to 1" in refused(path, JournalVersionError)


def test_a_program_that_holds_the_file_is_waited_for_and_then_named(tmp_path):
    path = a_journal(tmp_path / "j.db")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert "another program holds the whole file" in refused(path, JournalLockedError, wait=0.1)
    holder.execute("ROLLBACK")
    holder.close()
    a_journal(path)


@pytest.fixture
def open_folder():
    """A folder that other users may look into, as those of tests are not."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_file_of_nobodys_rights(open_folder):
    """A process without rights of its own is told so: the folder, the file, and a folder it may not write to."""
    path = a_journal(open_folder / "j.db")
    (open_folder / "folder").mkdir()
    a_journal(open_folder / "folder" / "j.db")
    os.chmod(path, 0o444)
    os.chmod(open_folder / "folder", 0o555)
    os.chmod(open_folder / "folder" / "j.db", 0o666)
    os.chmod(open_folder, 0o755)
    code = """
import sys, os, datetime
from ag2_parallel.errors import JournalError
from ag2_parallel.journal.sqlite import SqliteJournal
from ag2_parallel.records import RunHeader
def open_run(path):
    head = RunHeader(run_id="r", started_at=datetime.datetime.now(datetime.UTC))
    return SqliteJournal(path).open_run(head, post=print, failed=print)
open_run(sys.argv[1]).close(None)  # loads what is needed, which nobody may not be allowed to
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[2:]:
    try:
        open_run(path)
    except JournalError as error:
        print(type(error).__name__, error)
"""
    paths = [path, open_folder / "folder" / "j.db", open_folder / "folder" / "new.db"]
    arguments = [sys.executable, "-c", code, str(open_folder / "warm.db"), *map(str, paths)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line, each in zip(lines, paths, strict=True):
        assert line.startswith(f"JournalError journal {each}: it cannot be"), line
    assert "readonly" in lines[0] + lines[1]
    os.chmod(open_folder / "folder", 0o755)


# ---- versions


UPGRADE = """
-- A column more, and a table.
ALTER TABLE tasks ADD COLUMN note TEXT;
CREATE TABLE extra (
    note TEXT
);
INSERT INTO extra SELECT name FROM tasks;
"""


def version_of(path):
    with sqlite3.connect(path) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return version


def test_an_older_file_is_upgraded_and_keeps_what_it_has(tmp_path):
    path = a_journal(tmp_path / "j.db")
    open_file(path, create=False, version=2, upgrades={2: UPGRADE})
    assert version_of(path) == 2
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT note FROM extra").fetchall() == [("t",)]
        assert db.execute("SELECT name, note FROM tasks").fetchall() == [("t", None)]
    db.close()
    assert "format 2, this one reads up to 1" in refused(path, JournalVersionError)


def test_an_upgrade_that_breaks_leaves_the_file_as_it_was(tmp_path):
    path = a_journal(tmp_path / "j.db")
    with pytest.raises(JournalError, match="no such table: absent"):
        open_file(path, create=False, version=2, upgrades={2: UPGRADE + "INSERT INTO absent VALUES (1);\n"})
    assert version_of(path) == 1
    with Opened(path) as run:
        assert run.result("t").output == "kept"
    with pytest.raises(JournalVersionError, match="nothing leads from format 1 to 2"):
        open_file(path, create=False, version=2, upgrades={})


def test_a_new_file_has_every_upgrade(tmp_path):
    open_file(tmp_path / "j.db", create=True, version=2, upgrades={2: UPGRADE})
    assert version_of(tmp_path / "j.db") == 2


def test_every_version_has_its_script():
    assert sorted(database.UPGRADES) == list(range(2, database.SCHEMA_VERSION + 1))
    assert all(sql_file(name) for name in database.UPGRADES.values())


def test_every_statement_is_one_and_fits_the_schema(tmp_path):
    db = sqlite3.connect(a_journal(tmp_path / "j.db"), isolation_level=None)
    names = {name for table in ("runs", "lives", "tasks", "attempts", "calls", "receipts", "events", "results")
             for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}')")}  # fmt: skip
    given = dict.fromkeys(names | {"at", "after", "count"})
    for name, statement in queries().items():
        db.execute(f"EXPLAIN {statement}", given)
        assert statement.count(";") == 0, name
    db.close()


def test_new_files_that_two_make_at_once(tmp_path):
    problems = []

    def open_one(number):
        try:
            with Opened(tmp_path / "j.db", f"run{number}") as run:
                run.settle(result("t"))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=open_one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


# ---- the option's value


def test_the_option_says_what_is_wrong_with_it(tmp_path):
    assert Journal(tmp_path / "j.db").keep == "all"
    with pytest.raises(ConfigurationError) as raised:
        Journal(7, keep="some", calls="yes")
    assert len(raised.value.problems) == 3
    for path in ("", " ", "a\0b", b"bytes"):
        with pytest.raises(ConfigurationError, match="Journal path"):
            Journal(path)


def test_the_sql_is_part_of_the_package():
    folder = Path(ag2_parallel.__file__).parent / "journal"
    assert sorted(file.name for file in folder.glob("*.sql")) == sorted(
        ["queries.sql", "schema.sql", *database.UPGRADES.values()]
    )

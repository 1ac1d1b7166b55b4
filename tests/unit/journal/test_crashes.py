"""F35: what was published survives the death of the process at any instant, a torn log, and a full disk."""

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from journal_cases import Opened, call, result
from journal_writer import said

from ag2_parallel.errors import JournalDamagedError, JournalError
from ag2_parallel.journal import housekeeping
from ag2_parallel.journal.exporting import exported_rows
from ag2_parallel.journal.sqlite import SqliteJournal

pytestmark = pytest.mark.usefixtures("no_threads_left")

SIZE = 4000


def started(path, run_id="r", first=0, count=100_000, size=SIZE, *limit):
    command = [sys.executable, Path(__file__).with_name("journal_writer.py"), path, run_id, first, count, size, *limit]
    return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)


def lines_of(process):
    lines = [line for line in process.communicate(timeout=60)[0].split("\n") if line]
    return lines[lines.index("open") + 1 :] if "open" in lines else []


def assert_all_there(path, names, run_id="r", size=SIZE):
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()
    store = SqliteJournal(path)
    rows = {row["name"]: row for row in exported_rows(store, housekeeping.find_run(store, run_id))}
    assert set(names) <= {name for name, row in rows.items() if row["status"] == "succeeded"}
    for name, row in rows.items():
        if row["status"] is not None:
            assert row["output"] == said(int(name[1:]), size), name


@pytest.mark.timeout(900)
def test_what_was_published_survives_kill_9_at_any_instant(tmp_path, soak):
    chance = random.Random(4)
    for number in range(100 if soak else 3):
        if number % 10 == 0:  # each file dies ten times
            path, published = tmp_path / f"{number}.db", []
        process = started(path, first=1000 * number, count=1000)
        for _ in range(chance.randrange(1, 60)):
            process.stdout.readline()
        if chance.random() < 0.5:  # and somewhere between two of them
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        published += [line for line in lines_of(process) if line.startswith("t")]
        assert_all_there(path, published)
    assert housekeeping.find_run(SqliteJournal(path)).state == "interrupted"


def a_torn_log(tmp_path):
    """A journal with commits that are in the log alone, as a killed process leaves it, and the size of a page."""
    path = tmp_path / "torn.db"
    run = Opened(path)
    for index in range(6):
        run.attempt(f"t{index}", index)
        run.settle(result(f"t{index}", index, output=said(index, 20_000), attempts=1))
    folder = tmp_path / "killed"
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", folder / f"j.db{end}")
    run.die()
    return folder / "j.db"


@pytest.mark.timeout(900)
def test_the_log_may_be_cut_at_every_byte_of_its_last_two_frames(tmp_path, soak):
    path = a_torn_log(tmp_path)
    log = path.with_name("j.db-wal")
    whole, main = log.read_bytes(), path.read_bytes()
    page = int.from_bytes(whole[8:12], "big")
    last_two = 2 * (24 + page)
    cuts = (
        range(1, last_two + 1)
        if soak
        else sorted({*range(1, 40), *range(page, page + 60), *range(1, last_two, 211), last_two})
    )
    store = SqliteJournal(path)
    for cut in [0, *cuts]:
        for end in ("-wal", "-shm"):
            path.with_name(f"j.db{end}").unlink(missing_ok=True)
        path.write_bytes(main)
        log.write_bytes(whole[: len(whole) - cut])
        store = SqliteJournal(path)
        rows = list(exported_rows(store, housekeeping.find_run(store)))
        done = [row["name"] for row in rows if row["status"] == "succeeded"]
        assert done == [f"t{index}" for index in range(5 if cut else 6)], cut
        assert all(row["output"] == said(row["index"], 20_000) for row in rows if row["status"])
    with Opened(path) as run:  # and the run goes on
        assert [task.name for task in run.earlier() if task.status == "succeeded"] == [
            f"t{index}" for index in range(5)
        ]
        run.settle(result("t5", 5))


def filled(path):
    with Opened(path) as run:
        for index in range(40):
            run.keep(run.attempt(f"t{index}", index), call(f"d{index}", said(index, 3000)))
            run.receipts(f"t{index}").begin("k")
            run.settle(result(f"t{index}", index, output=said(index, 6000), attempts=1))


def read_everything(path):
    """Every result, call and task, through the journal's own door."""
    store = SqliteJournal(path)
    listing = housekeeping.find_run(store, "r")
    found = {}
    with Opened(path) as run:
        tasks = list(run.earlier())
        for task in tasks:
            found[task.name] = (task.status, run.result(task.name))
    found["calls"] = [(row["task"], row["digest"], row["body"]) for row in exported_rows(store, listing, "calls")]
    return found


@pytest.mark.timeout(900)
def test_a_damaged_file_is_one_clear_error_and_never_a_wrong_result(tmp_path, soak):
    filled(tmp_path / "sound.db")
    sound = (tmp_path / "sound.db").read_bytes()
    right = read_everything(tmp_path / "sound.db")
    path = tmp_path / "j.db"
    chance = random.Random(9)
    noticed = 0
    rounds = 2000 if soak else 60
    for _ in range(rounds):
        at = chance.randrange(len(sound))
        length = chance.choice([1, 1, 16, 500, 8192])
        noise = bytes(length) if chance.random() < 0.3 else chance.randbytes(length)
        broken = sound[:at] + noise + sound[at + length :]
        path.write_bytes(broken[: len(sound)])
        for end in ("-wal", "-shm"):
            path.with_name(f"j.db{end}").unlink(missing_ok=True)
        found = None
        with suppress(JournalError):
            found = read_everything(path)
        assert found in (None, right), (at, length)
        noticed += found is None
    assert noticed > rounds / 3


def test_a_damaged_schema_is_named_though_it_is_no_text(tmp_path):
    filled(tmp_path / "j.db")
    data = (tmp_path / "j.db").read_bytes()
    (tmp_path / "j.db").write_bytes(data.replace(b"CREATE TABLE runs (", b"CREATE TABL\xa9 \xff\xfes ("))
    with pytest.raises(JournalDamagedError):
        Opened(tmp_path / "j.db")


def test_a_file_that_was_cut_is_damaged(tmp_path):
    filled(tmp_path / "j.db")
    data = (tmp_path / "j.db").read_bytes()
    (tmp_path / "j.db").write_bytes(data[: len(data) // 2])
    with pytest.raises(JournalDamagedError, match="restore it from a copy"):
        Opened(tmp_path / "j.db")


def test_a_full_disk_is_told_once_and_what_was_published_stays(tmp_path):
    process = started(tmp_path / "j.db", "r", 0, 4000, SIZE, 8)
    *published, last = lines_of(process)
    assert process.returncode == 0
    assert last.startswith("failures 1 [JournalError('journal "), last
    assert 100 < len(published) < 4000
    assert_all_there(tmp_path / "j.db", published)
    with Opened(tmp_path / "j.db") as run:  # there is room again
        run.settle(result("t0", output=said(0, SIZE)))


def test_several_processes_write_one_file_at_once(tmp_path):
    processes = [started(tmp_path / "j.db", f"run{number}", 0, 150) for number in range(3)]
    for number, process in enumerate(processes):
        *published, last = lines_of(process)
        assert (last, len(published)) == ("failures 0 []", 150)
        assert_all_there(tmp_path / "j.db", published, f"run{number}")

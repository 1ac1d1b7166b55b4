"""One runner at a time has a run, and none once its process is dead."""

import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from journal_cases import Opened, result

from ag2_parallel.errors import JournalLockedError
from ag2_parallel.journal.run_lock import hold, is_held, lock_path

pytestmark = pytest.mark.usefixtures("no_threads_left")

HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from journal_cases import Opened
run = Opened(sys.argv[2], "r")
print("open", flush=True)
sys.stdin.read()
"""


def holder(path):
    command = [sys.executable, "-c", HOLDER, str(Path(__file__).parent), str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "open\n"
    return process


def end(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_second_process_is_refused_by_name_until_the_first_is_killed(tmp_path):
    process = holder(tmp_path / "j.db")
    with pytest.raises(JournalLockedError) as raised:
        Opened(tmp_path / "j.db", "r")
    assert f"process {process.pid} on {os.uname().nodename}, since 2026-05-04T12:00:00" in str(raised.value)
    assert "run 'r'" in str(raised.value)
    with Opened(tmp_path / "j.db", "another") as run:
        run.settle(result("t"))
    end(process)
    with Opened(tmp_path / "j.db", "r") as run:
        run.settle(result("t"))


def test_two_of_one_process_do_not_share_a_run(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        with pytest.raises(JournalLockedError, match="this process"):
            Opened(tmp_path / "j.db")
        (tmp_path / "link.db").symlink_to(tmp_path / "j.db")
        with pytest.raises(JournalLockedError):
            Opened(tmp_path / "link.db")
        with Opened(tmp_path / "j.db", "another"):
            pass
        process = subprocess.run(  # the end of the other run did not give this one away
            [sys.executable, "-c", HOLDER, str(Path(__file__).parent), str(tmp_path / "j.db")],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert "JournalLockedError" in process.stderr
        run.settle(result("t"))
    with Opened(tmp_path / "j.db"):
        pass


def test_of_many_threads_one_gets_the_run(tmp_path):
    Opened(tmp_path / "j.db", "first").run.close(None)
    got, refused, start = [], [], threading.Barrier(6)

    def take():
        start.wait()
        try:
            got.append(Opened(tmp_path / "j.db"))
        except JournalLockedError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 5)
    got[0].run.close(None)


def forked(child):
    """Runs `child` in a fork of this process, which then ends as forks of a program do; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_neither_has_the_run_nor_gives_it_away(tmp_path):
    run = Opened(tmp_path / "j.db")
    run.settle(result("before"))

    def child():
        with pytest.raises(JournalLockedError):
            Opened(tmp_path / "j.db")
        run.run._place.lock.release()
        with Opened(tmp_path / "j.db", "of the fork") as own:
            own.settle(result("t"))
        vars(run).clear()  # the parent's connections are closed here as a fork's end may do
        gc.collect()

    assert forked(child) == 0
    process = subprocess.run(
        [sys.executable, "-c", HOLDER, str(Path(__file__).parent), str(tmp_path / "j.db")],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert "JournalLockedError" in process.stderr
    run.settle(result("after", 1))
    run.run.close(None)
    with Opened(tmp_path / "j.db") as again:
        assert [task.name for task in again.earlier()] == ["before", "after"]
    with sqlite3.connect(tmp_path / "j.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


def test_a_lock_goes_with_its_process_though_its_fork_lives_on(tmp_path):
    forking = HOLDER.replace(
        'print("open", flush=True)',
        'import os\nif os.fork() == 0:\n    sys.stdin.read()\n    os._exit(0)\nprint("open", flush=True)',
    )
    command = [sys.executable, "-c", forking, str(Path(__file__).parent), str(tmp_path / "j.db")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "open\n"
    process.kill()
    process.wait()
    with Opened(tmp_path / "j.db"):
        pass
    process.communicate()


def test_whoever_looks_does_not_take(tmp_path):
    path = tmp_path / "j.db"
    assert not is_held(path, 1)
    assert not lock_path(path).exists()
    lock = hold(path, 1)
    assert is_held(path, 1)
    assert not is_held(path, 2)
    other = hold(path, 2)
    lock.release()
    lock.release()
    assert (is_held(path, 1), is_held(path, 2)) == (False, True)
    other.release()
    assert not is_held(path, 2)

"""Runs with a journal that are interrupted, or whose file cannot be written any more."""

import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "runs.db"


PROGRAM = """
import logging, sys, time
from ag2_parallel import ParallelAgentRunner, ParallelTask, RunInterrupted
logging.basicConfig(level=logging.WARNING, format="%(message)s")
def poll(ctx):
    if ctx.index == 0: print("started", flush=True)
    end = time.monotonic() + 1.0
    while time.monotonic() < end: ctx.check(); time.sleep(0.01)
try:
    ParallelAgentRunner(2, grace=0.5, journal=sys.argv[1], progress=False).run(
        [ParallelTask(f"t{i}", run=poll) for i in range(4)], run_id="one")
except RunInterrupted as error:
    print(error, [str(r.status) for r in error.results.values()], flush=True)
    sys.exit(130)
"""


def interrupted(journal, times, before=lambda: None):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, journal], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "started\n"
    before()
    for _ in range(times):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    at = time.monotonic()
    out, err = process.communicate(timeout=20)
    return process.returncode, out, err, time.monotonic() - at


def test_an_interrupt_says_how_to_go_on(journal):
    """F10, F24: what was done is in the journal, and the next life does the rest."""
    code, out, err, _ = interrupted(journal, 2)
    assert code == 130
    how = f"runner.resume({str(journal)!r}, tasks, run_id='one')"
    assert how in out
    assert how in err

    def quick(ctx):
        return "done"

    results = ParallelAgentRunner(progress=False).resume(journal, [ParallelTask(f"t{i}", run=quick) for i in range(4)])
    assert results.ok


@pytest.mark.parametrize(("times", "at_most"), [(2, 1.5), (3, 1.0)])
def test_the_exit_waits_for_nobody_who_holds_the_file(journal, times, at_most):
    """F36: another program has the whole file from the first task on."""
    other = sqlite3.connect(journal, isolation_level=None, check_same_thread=False)

    def hold():
        other.execute("BEGIN EXCLUSIVE")

    code, out, _, took = interrupted(journal, times, hold)
    other.close()
    assert code == 130
    assert "skipped" in out
    assert took < at_most


def test_a_journal_that_cannot_be_written_any_more_stops_the_run_and_keeps_what_is_committed(journal, tmp_path):
    """F35: a file that may not grow any further stands for a full disk."""
    program = """
import resource, signal, sys
from ag2_parallel import Journal, ParallelAgentRunner, ParallelTask, RunFailedError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
import os, time
def big(ctx): time.sleep(0.1); return os.urandom(50_000).hex()
try:
    ParallelAgentRunner(2, journal=sys.argv[1], progress=False).run(
        [ParallelTask(f"t{i}", run=big) for i in range(400)], run_id="one")
except RunFailedError as error:
    results = error.results
    print(results.stop_reason, len(results), type(error.__cause__).__name__, len(results.skipped) > 100)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, journal], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stdout == "journal_error 400 JournalError True\n", done.stderr
    [(written,)] = sqlite3.connect(journal).execute("SELECT count(*) FROM tasks WHERE status = 'succeeded'")
    assert 0 < written < 60

"""Runs in a file: what is written comes back, and what was cut is known as cut."""

import sqlite3
import stat
import subprocess
import sys
import threading
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest
from journal_cases import Opened, call, header, result

from ag2_parallel import AttemptRecord, ParallelTaskResult, TaskError, TaskStatus, Usage
from ag2_parallel.events import AttemptStarted, TaskReported
from ag2_parallel.journal.sqlite import SqliteJournal
from ag2_parallel.records import EarlierTask
from ag2_parallel.redaction import Redactor
from ag2_parallel.spans import Span

pytestmark = pytest.mark.usefixtures("no_threads_left")

STAMP = datetime(2026, 5, 4, 3, 2, 1, 5, tzinfo=UTC)
ERROR = TaskError(type="ValueError", message="no", kind="provider", retryable=False, status_code=400, retry_after=1.5)
USAGE = Usage(prompt_tokens=7, completion_tokens=3, calls=2, cost=0.25).for_model("m")
WHOLE = ParallelTaskResult(
    name="whole",
    index=3,
    status=TaskStatus.FAILED,
    output={"answer": [1, 2.5, None, True]},
    summary="a summary",
    chat_history=({"role": "user", "content": "hello"},),
    context={"case": "x"},
    last_speaker="doctor",
    stop_reason="error",
    ended="returned",
    usage=USAGE,
    error=ERROR,
    attempts=2,
    attempt_log=(AttemptRecord(number=1, status=TaskStatus.FAILED, duration=0.5, error=ERROR, ended="cut"),),
    queued=0.25,
    duration=1.75,
    waited=0.125,
    started_at=STAMP,
    finished_at=STAMP,
    console="printed",
    metadata={"row": 1},
    group="ward",
    directory=Path("folder") / "task",
    replayed_calls=1,
    trace=(Span("tool", "hello", 0.0, 1.0, "hello"),),
    dropped_spans=1,
)


def test_a_result_comes_back_as_it_was(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        run.settle(WHOLE)
    with Opened(tmp_path / "j.db") as run:
        assert run.result("whole") == WHOLE
        assert run.result("unknown") is None
        assert {item.name for item in fields(WHOLE) if getattr(WHOLE, item.name) in (None, (), {}, 0, "")} == set()


def test_keep_says_what_is_left_out(tmp_path):
    kept = {}
    for keep in ("summary", "none"):
        with Opened(tmp_path / f"{keep}.db", keep=keep) as run:
            run.settle(WHOLE)
            run.note(TaskReported(run_id="r", message="said"))
        with Opened(tmp_path / f"{keep}.db") as run:
            kept[keep] = run.result("whole")
        blob = (tmp_path / f"{keep}.db").read_bytes()
        assert b"hello" not in blob
        assert b"printed" not in blob
        assert b"said" not in blob
    assert (kept["summary"].output, kept["summary"].chat_history) == (WHOLE.output, ())
    left = kept["none"]
    assert (left.output, left.summary, left.metadata, left.context) == (None, None, None, {})
    assert (left.status, left.usage, left.error) == (WHOLE.status, USAGE, ERROR)


def test_what_earlier_lives_left(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        for index, name in enumerate(["done", "timed out", "in its pause", "running"]):
            run.attempt_started(index, name, f"print of {name}", 1)
        run.settle(result("done", 0), "print of done")
        run.settle(result("timed out", 1, TaskStatus.TIMED_OUT), "print of timed out", cut=True)
        run.attempt_ended(2, 1, cut=False)
        run.settle(result("never started", 4, TaskStatus.SKIPPED), "print of never started")
    with Opened(tmp_path / "j.db") as run:
        assert list(run.earlier()) == [
            EarlierTask(name="done", fingerprint="print of done", status="succeeded", cut=False),
            EarlierTask(name="timed out", fingerprint="print of timed out", status="timed_out", cut=True),
            EarlierTask(name="in its pause", fingerprint="print of in its pause", status=None, cut=False),
            EarlierTask(name="running", fingerprint="print of running", status=None, cut=True),
            EarlierTask(name="never started", fingerprint="print of never started", status="skipped", cut=False),
        ]
        assert run.result("running") is None


def test_a_task_that_runs_again_has_one_last_result(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        run.attempt("t")
        run.settle(result("t", status=TaskStatus.FAILED), "old")
    with Opened(tmp_path / "j.db") as run:
        run.attempt("t", fingerprint="new")
        run.receipts("t").begin("wait for the commit")
        assert run.result("t") is None
        assert [(task.status, task.fingerprint) for task in run.earlier()] == [(None, "new")]
        run.settle(result("t", index=5), "new")
    with Opened(tmp_path / "j.db") as run:
        assert [(task.status, task.fingerprint) for task in run.earlier()] == [("succeeded", "new")]
        assert run.result("t").index == 5


def test_runs_of_one_file_know_nothing_of_each_other(tmp_path):
    with Opened(tmp_path / "j.db", "one") as one, Opened(tmp_path / "j.db", "two") as two:
        one.settle(result("t", output=1))
        two.settle(result("t", output=2))
        assert (one.result("t").output, two.result("t").output) == (1, 2)
    with Opened(tmp_path / "j.db", "three") as three:
        assert list(three.earlier()) == []


def test_a_header_explains_the_last_life(tmp_path):
    store = SqliteJournal(tmp_path / "j.db")
    explained = header(
        options={"timeout": 3, "llm_config": {"api_key": "sk-live-1a2b3c4d"}},
        versions={"python": "3.11"},
        platform="somewhere",
        revision="abc",
        source={"file": "tasks.yaml"},
        total=3,
    )
    Opened(tmp_path / "j.db", head=explained).run.close(None)
    Opened(tmp_path / "j.db", "other", head=header("other", total=1)).run.close(None)
    found = store.header("r")
    assert found.options == {"timeout": 3, "llm_config": {"api_key": "***"}}
    assert (found.source, found.versions, found.total) == ({"file": "tasks.yaml"}, {"python": "3.11"}, 3)
    assert found.started_at == explained.started_at
    assert store.header().run_id == "other"
    assert store.header("unknown") is None


def test_durations_are_those_of_succeeded_tasks_the_latest_last(tmp_path):
    later = STAMP.replace(hour=9)
    with Opened(tmp_path / "j.db", "one") as run:
        run.settle(result("late", 0, duration=2.0, group="g", finished_at=later))
        run.settle(result("early", 1, duration=1.0, finished_at=STAMP))
        run.settle(result("bad", 2, TaskStatus.FAILED, duration=9.0))
    with Opened(tmp_path / "j.db", "two") as run:
        run.settle(result("early", duration=3.0, finished_at=STAMP))
    store = SqliteJournal(tmp_path / "j.db")
    assert list(store.durations("one")) == [("early", None, 1.0), ("late", "g", 2.0)]
    assert [seconds for _, _, seconds in store.durations()] == [1.0, 2.0, 3.0]
    assert list(store.durations("none such")) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_all_files_are_for_their_owner_alone(tmp_path, umask):
    """F33: whatever the umask is."""
    code = "import os, sys; os.umask(int(sys.argv[1])); sys.path.insert(0, sys.argv[3])\n"
    code += "from journal_cases import Opened, result\n"
    code += (
        "run = Opened(sys.argv[2]); run.settle(result('t')); print(*sorted(os.listdir('.')), flush=True); os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(umask), "j.db", str(Path(__file__).parent)],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout.split() == ["j.db", "j.db-lock", "j.db-shm", "j.db-wal"]
    assert {
        file.name: oct(file.stat().st_mode) for file in tmp_path.iterdir() if stat.S_IMODE(file.stat().st_mode) != 0o600
    } == {}


def test_secrets_are_masked_before_they_reach_the_file(tmp_path):
    """F33: keys that look like keys, and those the run knows, in results, calls, events and headers."""
    redactor = Redactor()
    redactor.learn({"api_key": "Zebra9QuiltMarble"})
    keys = "sk-test-0123456789abcdef and Zebra9QuiltMarble"
    store = SqliteJournal(tmp_path / "j.db")
    head = header(options={"note": keys})
    run = store.open_run(head, post=lambda f: f(), failed=pytest.fail, mask=redactor.text)
    done = threading.Event()
    run.attempt_started(0, "t", "f", 1)
    run.tape(0, "t", 1).keep(call("d", keys, endpoint=keys), lambda: None)
    run.note(TaskReported(run_id="r", message=keys))
    told = TaskError(type="E", message=keys, traceback=keys)
    whole = result(
        "t", output={keys: [keys]}, console=keys, metadata=keys, error=told, chat_history=[{"content": keys}]
    )
    run.settle(whole, "f", cut=True, published=done.set)
    assert done.wait(20)
    blob = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    run.close(None)
    blob += (tmp_path / "j.db").read_bytes()
    assert b"sk-test" not in blob
    assert b"Zebra9" not in blob
    assert b"*** and ***" in blob


def test_events_are_kept_with_all(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        run.note(AttemptStarted(run_id="r", task="t", index=0, attempt=1))
        run.settle(result("t"))
    with sqlite3.connect(tmp_path / "j.db") as db:
        assert db.execute("SELECT type FROM events").fetchall() == [("AttemptStarted",)]
    db.close()


def test_a_callback_that_raises_harms_nobody(tmp_path, caplog):
    with Opened(tmp_path / "j.db") as run:
        run.run.settle(result("a"), "f", cut=False, published=lambda: 1 / 0)
        run.settle(result("b", 1))
        assert run.failures == []
    assert "ZeroDivisionError" in caplog.text


def test_attempts_of_every_life_are_listed(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        run.attempt("t")
        run.attempt_ended(0, 1, cut=False)
        run.attempt("t", number=2)
        run.receipts("t").begin("commit")
        run.die()
    with Opened(tmp_path / "j.db") as run:
        run.attempt("t")
        run.settle(result("t", attempts=1))
    with sqlite3.connect(tmp_path / "j.db") as db:
        rows = db.execute("SELECT life, number, ended_at IS NULL, cut FROM attempts ORDER BY life, number").fetchall()
    db.close()
    assert rows == [(1, 1, 0, 0), (1, 2, 1, None), (2, 1, 0, 0)]


def test_stamps_are_the_walls_and_durations_are_not(tmp_path):
    """F37: a clock that is set back changes no order of what was done and no duration."""
    stamps = iter([datetime(2026, 1, day, tzinfo=UTC) for day in (9, 3, 20, 1, 2)])
    with Opened(tmp_path / "j.db", clock=lambda: next(stamps)) as run:
        run.attempt("t")
        run.settle(result("t", attempts=1, duration=2.5))
    with sqlite3.connect(tmp_path / "j.db") as db:
        started, ended = db.execute("SELECT started_at, ended_at FROM attempts").fetchone()
        assert db.execute("SELECT duration FROM tasks").fetchone() == (2.5,)
    db.close()
    assert (started, ended) == ("2026-01-09T00:00:00+00:00", "2026-01-03T00:00:00+00:00")

"""What a journal has is listed, shown, exported and pruned."""

import csv
import json
import subprocess
import sys
from datetime import timedelta

import pytest
from journal_cases import STARTED, Opened, call, header, result

from ag2_parallel import ConfigurationError, TaskError, TaskStatus, Usage
from ag2_parallel.errors import JournalError, JournalLockedError
from ag2_parallel.events import TaskReported
from ag2_parallel.journal.exporting import exported_rows
from ag2_parallel.journal.housekeeping import RunListing, find_run, find_task, list_runs, prune, to_prune
from ag2_parallel.journal.sqlite import SqliteJournal

pytestmark = pytest.mark.usefixtures("no_threads_left")


def priced(cost):
    return Usage(prompt_tokens=10, completion_tokens=5, calls=1, cost=cost)


def filled(path, run_id="r", tasks=3, **options):
    """A run of some tasks with one call each; the last is not settled."""
    with Opened(path, run_id, head=header(run_id, total=tasks), **options) as run:
        for index in range(tasks):
            run.keep(run.attempt(f"t{index}", index), call(f"d{index}"))
            if index < tasks - 1:
                run.settle(result(f"t{index}", index, usage=priced(0.5), attempts=1, output=index, duration=2.0))
        run.note(TaskReported(run_id=run_id, task="t0", message="hello"))
    return SqliteJournal(path)


def test_runs_are_listed_with_their_state_and_sums(tmp_path):
    path = tmp_path / "j.db"
    store = filled(path, "finished")
    Opened(path, "killed").die()
    stopped = Opened(path, "stopped")
    stopped.run.close("fail_fast")
    with Opened(path, "going"):
        finished, killed, stopped, going = list_runs(store)
        assert (finished.state, finished.lives, finished.total) == ("finished", 1, 3)
        assert finished.counts == {"succeeded": 2, "unfinished": 1}
        assert (finished.tokens, finished.calls, finished.cost) == (30, 2, 1.0)
        assert finished.started_at == STARTED.isoformat()
        assert (killed.state, killed.ended_at, killed.counts) == ("interrupted", None, {})
        assert (stopped.state, stopped.stop_reason) == ("interrupted", "fail_fast")
        assert going.state == "running"
    assert list_runs(store)[-1].state == "finished"


def test_a_cost_is_unknown_where_one_price_is(tmp_path):
    with Opened(tmp_path / "j.db") as run:
        run.settle(result("known", 0, usage=priced(0.5)))
        run.settle(result("unknown", 1, usage=priced(None)))
    assert find_run(SqliteJournal(tmp_path / "j.db")).cost is None


def test_a_run_and_a_task_are_found_or_the_nearest_is_named(tmp_path):
    store = filled(tmp_path / "j.db", "monday")
    filled(tmp_path / "j.db", "tuesday")
    assert find_run(store).run_id == "tuesday"
    monday = find_run(store, "monday")
    found = find_task(store, monday, "t1")
    assert (found.row.status, found.result.output, len(found.attempts)) == ("succeeded", 1, 1)
    assert find_task(store, monday, "t2").result is None
    with pytest.raises(ConfigurationError, match="did you mean 'monday'"):
        find_run(store, "mondai")
    with pytest.raises(ConfigurationError, match="run 'monday' has no task 't11'; did you mean 't1'"):
        find_task(store, monday, "t11")
    with pytest.raises(JournalError, match="no such file"):
        list_runs(SqliteJournal(tmp_path / "missing.db"))
    assert not (tmp_path / "missing.db").exists()


def test_everything_of_a_run_is_exported(tmp_path):
    store = filled(tmp_path / "j.db")
    filled(tmp_path / "j.db", "other")
    run = find_run(store, "r")
    tasks = list(exported_rows(store, run))
    assert [(row["schema"], row["run_id"], row["name"], row["status"], row["output"]) for row in tasks] == [
        (1, "r", "t0", "succeeded", 0),
        (1, "r", "t1", "succeeded", 1),
        (1, "r", "t2", None, None),
    ]
    calls = list(exported_rows(store, run, "calls"))
    assert [(row["task"], row["digest"], row["body"], row["life"]) for row in calls] == [
        (f"t{index}", f"d{index}", "answer", 1) for index in range(3)
    ]
    (event,) = exported_rows(store, run, "events")
    assert (event["type"], event["message"]) == ("TaskReported", "hello")


def listings(*days_and_states):
    return [
        RunListing(
            f"run{i}", i, "", (STARTED - timedelta(days=days)).isoformat(), 1, None, None, state, 1, {}, 0, 0, 0.0
        )
        for i, (days, state) in enumerate(days_and_states)
    ]


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        ({"run_ids": ["run3", "run0"]}, ["run0", "run3"]),
        ({"older_than": timedelta(days=5)}, ["run0", "run2"]),
        ({"keep_last": 1}, ["run0", "run2"]),
        ({"keep_last": 0}, ["run0", "run2", "run3"]),
        ({"keep_last": 9}, []),
        ({"keep_last": 2, "older_than": timedelta(days=8)}, ["run0"]),
    ],
)
def test_which_runs_are_pruned(rule, gone):
    known = listings((9, "finished"), (8, "running"), (5, "interrupted"), (1, "finished"))
    assert [listing.run_id for listing in to_prune(known, **rule, now=STARTED)] == gone


def test_pruning_gives_the_room_back_and_leaves_other_runs_alone(tmp_path):
    path = tmp_path / "j.db"
    with Opened(path, "big") as run:
        for index in range(30):
            run.attempt(f"t{index}", index)
            run.settle(result(f"t{index}", index, output="x" * 31_000))
    store = filled(path, "small")
    before = path.stat().st_size
    prune(store, [find_run(store, "big")])
    assert [listing.run_id for listing in list_runs(store)] == ["small"]
    assert path.stat().st_size < before / 4
    assert len(list(exported_rows(store, find_run(store, "small"), "calls"))) == 3


def test_a_run_that_is_held_is_not_pruned(tmp_path):
    path = tmp_path / "j.db"
    with Opened(path) as run:
        run.settle(result("t"))
        store = SqliteJournal(path)
        with pytest.raises(JournalLockedError, match="run 'r' is running"):
            prune(store, list_runs(store))
    with Opened(path) as run:
        assert run.result("t") is not None


# ---- the commands


def program(*arguments, cwd):
    command = [sys.executable, "-m", "ag2_parallel", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30, check=False)


def test_the_commands_show_what_there_is(tmp_path):
    path = tmp_path / "j.db"
    filled(path, "first")
    with Opened(path, "second") as run:
        failed = TaskError(type="ValueError", message="no \x1b[2J way", kind="provider")
        odd = 'a\ud83d,"b"\n\u2028\0'
        run.settle(
            result("bad\u202ename", status=TaskStatus.FAILED, error=failed, output={"n": float("nan")}, summary=odd)
        )

    shown = program("runs", path, cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert all(word in shown.stdout for word in ("first", "second", "finished", "2 succeeded", "1 failed"))
    assert [row["run_id"] for row in json.loads(program("runs", path, "--format", "json", cwd=tmp_path).stdout)] == [
        "first",
        "second",
    ]

    one = program("show", path, cwd=tmp_path)
    assert (one.returncode, "provider" in one.stdout, "\u202e" in one.stdout) == (0, True, False)
    task = program("show", path, "second", "bad\u202ename", cwd=tmp_path)
    assert (task.returncode, "way" in task.stdout, "\x1b" in task.stdout) == (0, True, False)
    named = program("show", path, "first", "t0", "--format", "json", cwd=tmp_path)
    assert json.loads(named.stdout)[0]["attempts_of_all_lives"][0]["number"] == 1

    lines = program("export", path, cwd=tmp_path).stdout
    (row,) = [json.loads(line) for line in lines.split("\n") if line]
    assert (row["summary"], row["output"], row["error"]["message"]) == (odd, {"n": None}, failed.message)
    table = program("export", path, "second", "--format", "csv", "--out", "out.csv", cwd=tmp_path)
    assert (table.returncode, table.stdout) == (0, "")
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["error_kind"], row["summary"]) == ("provider", odd.replace("\ud83d", "\\ud83d"))
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


def test_a_task_of_the_last_run_is_shown_without_the_run_s_name(tmp_path):
    filled(tmp_path / "j.db", "first")
    filled(tmp_path / "j.db", "t1")
    filled(tmp_path / "j.db", "third run")

    def shown(*names):
        done = program("show", "j.db", *names, "--format", "json", cwd=tmp_path)
        return [row["name"] for row in json.loads(done.stdout or "[]")], done.stderr

    assert shown("t0") == (["t0"], "")
    assert shown("first") == (["t0", "t1", "t2"], "")
    assert shown("first", "t1") == (["t1"], "")
    names, told = shown("t1")
    assert names == ["t0", "t1", "t2"]
    assert "'t1' is a run" in told
    assert "ag2-parallel show j.db 'third run' t1\n" in told
    assert (
        "there is no run 't11' in it, and its last run 'third run' has no task of this name; did you mean 't1'"
        in shown("t11")[1]
    )


def test_parquet_has_numbers_as_numbers(tmp_path):
    import pyarrow.parquet

    filled(tmp_path / "j.db")
    done = program("export", "j.db", "--format", "parquet", "--out", "out.parquet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert (table["name"], table["duration"], table["prompt_tokens"]) == (
        ["t0", "t1", "t2"],
        [2.0, 2.0, 0.0],
        [10, 10, 0],
    )
    assert table["output"] == ["0", "1", None]
    assert table["cost"] == [0.5, 0.5, 0.0]


def test_prune_by_command(tmp_path):
    for name in ("one", "two", "three"):
        filled(tmp_path / "j.db", name)
    would = program("prune", "j.db", "--keep-last", "1", "--dry-run", cwd=tmp_path)
    assert would.stdout.split() == ["one", "two"]
    assert program("prune", "j.db", "two", cwd=tmp_path).stdout.split() == ["two"]
    assert program("prune", "j.db", "--older-than", "1h", cwd=tmp_path).stdout.split() == ["one", "three"]
    assert program("runs", "j.db", "--format", "jsonl", cwd=tmp_path).stdout == ""


def test_prune_says_why_it_removed_nothing(tmp_path):
    filled(tmp_path / "j.db", "one")
    with Opened(tmp_path / "j.db", "going"):
        kept = program("prune", "j.db", "--keep-last", "5", cwd=tmp_path)
        assert (kept.returncode, kept.stdout) == (0, "")
        assert kept.stderr == "ag2-parallel: nothing was removed from j.db; its runs stay: 2 among the last 5\n"
        young = program("prune", "j.db", "--older-than", "99999d", "--dry-run", cwd=tmp_path).stderr
        assert "nothing would be removed from j.db; its runs stay: 1 running, 1 not old enough" in young
        assert f"the oldest was last taken up {STARTED:%Y-%m-%d %H:%M} UTC" in young
    program("prune", "j.db", "one", "going", cwd=tmp_path)
    assert "there is no run in it" in program("prune", "j.db", "--keep-last", "1", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["runs", "missing.db"], 2, "no such file"),
        (["runs", "text.db"], 2, "damaged or no journal"),
        (["show", "j.db", "none"], 2, "there is no run 'none'"),
        (["show", "j.db", "r", "none"], 2, "has no task 'none'"),
        (["export", "j.db", "--out", "no/folder.jsonl"], 2, "cannot be made"),
        (["prune", "j.db"], 2, "name runs, or give"),
        (["prune", "j.db", "r", "--keep-last", "1"], 2, "not both"),
        (["prune", "j.db", "--older-than", "soon"], 2, "no age such as 30d"),
        (["export", "j.db", "--format", "xml"], 2, "--format"),
    ],
)
def test_what_is_wrong_is_said_with_an_exit_code(tmp_path, arguments, code, told):
    filled(tmp_path / "j.db")
    (tmp_path / "text.db").write_text("this is no database, but some text that is long enough" * 40)
    done = program(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr

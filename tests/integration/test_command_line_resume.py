"""Runs of the command line that are killed, interrupted and terminated, and `ag2-parallel resume`."""

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
import time

import pytest
from command_line import SOURCES, rows_of, run, start

from ag2_parallel.testing import ModelServer

CODE = """
import os, time
from pathlib import Path

def quick(ctx):
    return f"did {ctx.prompt}"

def once_slow(ctx):
    open(f"started-{ctx.name}", "w").close()
    while not Path("fast").exists():
        ctx.check()
        time.sleep(0.02)
    return f"did {ctx.prompt}"

def some_seconds(ctx):
    open(f"started-{ctx.name}", "w").close()
    end = time.monotonic() + 3
    while time.monotonic() < end:
        ctx.check()
        time.sleep(0.02)
    return f"did {ctx.prompt}"

def stuck(ctx):
    open(f"started-{ctx.name}", "w").close()
    while not Path("fast").exists():
        try:
            time.sleep(0.02)
        except BaseException:
            pass

def pooled(ctx):
    from concurrent.futures import ThreadPoolExecutor
    open(f"started-{ctx.name}", "w").close()
    ThreadPoolExecutor(1).submit(time.sleep, 60).result()
"""

TASKS = "tasks:\n" + "".join(f'  - {{name: t{i}, run: "work:%s", prompt: p{i}}}\n' for i in range(8))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text(CODE)
    return tmp_path


def write(folder, *functions):
    names = [functions[i] if i < len(functions) else "quick" for i in range(8)]
    (folder / "t.yaml").write_text(TASKS % tuple(names))


def wait_for(folder, *names):
    end = time.monotonic() + 30
    while not all((folder / f"started-{name}").exists() for name in names):
        assert time.monotonic() < end
        time.sleep(0.02)


RUN = ["run", "t.yaml", "--journal", "runs.db", "--run-id", "one", "--out", "r.jsonl", "--workers", "2"]


def resumed(folder, *more):
    code, out, err = run(["resume", "runs.db", *more, "--format", "jsonl"], folder)
    return code, {row["name"]: row for row in map(json.loads, out.splitlines())}, err


def test_a_killed_run_is_resumed_with_one_command(folder):
    write(folder, "quick", "quick", "once_slow", "once_slow")
    process = start(RUN, folder)
    wait_for(folder, "t2", "t3")
    process.kill()
    process.communicate()
    (folder / "fast").touch()
    code, rows, err = resumed(folder)
    assert (code, len(rows)) == (0, 8)
    assert "2 of its results stand" in err
    written = rows_of(folder / "r.jsonl")
    assert sorted(row["name"] for row in written) == sorted(rows)  # one row a task
    assert {row["status"] for row in written} == {"succeeded"}


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_killed_run_has_told_how_to_go_on_with_it(folder, quiet):
    write(folder, "once_slow")
    with start(["run", "t.yaml", "--journal", "the runs.db", *quiet], folder) as process:
        wait_for(folder, "t0")
        process.kill()
        told = process.communicate()[1]
    (folder / "fast").touch()
    lines = [line for line in told.splitlines() if "go on with: " in line]
    if quiet:
        assert not lines
        return
    (line,) = lines
    assert line.startswith("ag2-parallel: if this run is cut off, go on with: ")
    program, *typed = shlex.split(line.partition("go on with: ")[2])
    code, out, _ = run([*typed, "--format", "jsonl"], folder)
    assert (program, code, len(out.splitlines())) == ("ag2-parallel", 0, 8)


def test_a_run_that_read_a_pipe_is_given_the_pipe_again(folder):
    (folder / "a.yaml").write_text('defaults: {run: "work:quick"}\n')
    rows = "id\n" + "".join(f"c{i}\n" for i in range(3))
    command = ["map", "a.yaml", "-", "--prompt", "{{ id }}", "--journal", "runs.db", "--run-id", "one"]
    err = run(command, folder, rows)[2]
    assert "if this run is cut off, go on with: the same command with --run-id one\n" in err
    code, _, err = run(["resume", "runs.db"], folder)
    assert (code, "run 'one' read a pipe: give it the same command and data again, with --run-id one" in err) == (
        2,
        True,
    )
    code, out, err = run([*command, "--format", "jsonl"], folder, rows + "c3\n")
    assert (code, len(out.splitlines()), "3 of its results stand" in err) == (0, 4, True)


def test_a_data_set_is_resumed_too(folder):
    (folder / "cases.csv").write_text("id,text\n" + "".join(f"c{i},case {i}\n" for i in range(12)))
    with ModelServer(lambda request: f"seen {request.last_text}") as server:
        (folder / "agent.yaml").write_text(
            f'agents: {{a: {{llm_config: {{config_list: [{{model: m, api_key: x, base_url: "{server.base_url}"}}]}}}}}}'
        )
        arguments = ["map", "agent.yaml", "cases.csv", "--prompt", "{{ text }}", "--name", "{{ id }}"]
        assert run([*arguments, "--journal", "runs.db", "--quiet"], folder)[0] == 0
        assert server.ledger.count == 12
        with (folder / "cases.csv").open("a") as file:
            file.write("c12,case 12\n")
        code, rows, _ = resumed(folder)
        assert (code, len(rows), server.ledger.count) == (0, 13, 13)
        assert rows["c12"]["output"] == "seen case 12"


def test_what_runs_again_can_be_narrowed(folder):
    write(folder)
    assert run(RUN, folder)[0] == 0
    (folder / "t.yaml").write_text((folder / "t.yaml").read_text().replace("p3", "another"))
    code, _, err = resumed(folder, "--changed", "error")
    assert code == 2
    assert err.endswith(
        "error: 1 task would do something else than before: t3; start a new run for that, or resume with --changed rerun "
        "or --changed keep\n"
    )
    code, rows, _ = resumed(folder, "one", "--changed", "keep")
    assert (code, rows["t3"]["output"]) == (0, "did p3")
    code, rows, err = resumed(folder)
    assert (code, rows["t3"]["output"]) == (0, "did another")
    assert "1 would do something else than before and run again (t3)" in err


def test_what_cannot_be_resumed_is_a_usage_error(folder):
    write(folder)
    assert run(["resume", "runs.db"], folder)[0] in {2, 3}
    assert run(RUN, folder)[0] == 0
    code, _, err = run(["resume", "runs.db", "another"], folder)
    assert (code, "no run 'another'" in err) == (2, True)


def test_a_run_that_goes_on_elsewhere_is_refused_by_name(folder):
    write(folder, "once_slow")
    process = start(RUN, folder)
    wait_for(folder, "t0")
    code, _, err = run(["resume", "runs.db"], folder)
    assert code == 3
    assert f"process {process.pid}" in err
    (folder / "fast").touch()
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_the_first_interrupt_lets_running_tasks_finish(folder):
    """F24."""
    write(folder, "some_seconds", "some_seconds", *["once_slow"] * 6)
    process = start(RUN, folder)
    wait_for(folder, "t0", "t1")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    statuses = {row["name"]: row["status"] for row in rows_of(folder / "r.jsonl")}
    assert process.returncode == 130
    assert statuses == {**{f"t{i}": "skipped" for i in range(8)}, "t0": "succeeded", "t1": "succeeded"}
    assert "interrupt again" in err
    assert re.search(r"go on with: ag2-parallel resume \S*runs.db one\n", err)


@pytest.mark.parametrize(
    ("task", "kind"), [("once_slow", "cancelled"), ("stuck", "cancelled"), ("pooled", "cancelled")]
)
@pytest.mark.parametrize(("sent", "times", "code"), [(signal.SIGINT, 2, 130), (signal.SIGTERM, 1, 143)])
def test_the_second_stage_is_over_within_the_grace_and_some_seconds(folder, task, kind, sent, times, code):
    """F24, M6: whatever is stuck; a pool that a tool made does not hold the process."""
    write(folder, "quick", task, "quick")
    process = start(RUN, folder)
    wait_for(folder, "t1")
    for _ in range(times):
        time.sleep(0.3)
        process.send_signal(sent)
    at = time.monotonic()
    _, err = process.communicate(timeout=30)
    took = time.monotonic() - at
    assert process.returncode == code
    assert took < 1 + 1 + 0.3  # the grace, a second, and the interpreter's own end on a busy machine
    statuses = {row["name"]: row["status"] for row in rows_of(folder / "r.jsonl")}
    assert len(statuses) == 8
    assert statuses["t1"] == kind
    assert "ag2-parallel resume" in err
    (folder / "fast").touch()
    if task != "pooled":
        assert resumed(folder)[0] == 0


def test_three_interrupts_on_a_terminal(folder):
    """M6: typed on a pseudo-terminal, the third is out within a second whatever is stuck."""
    write(folder, "stuck", "stuck")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ag2_parallel", *RUN],
        cwd=folder, stdin=child, stdout=child, stderr=child, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - the terminal has to be its own
        env={**os.environ, "PYTHONPATH": SOURCES},
    )  # fmt: skip
    os.close(child)
    screen = []

    def read():
        try:
            while text := os.read(parent, 4096):
                screen.append(text)
        except OSError:
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    wait_for(folder, "t0", "t1")
    for _ in range(3):
        time.sleep(0.25)
        os.write(parent, b"\x03")
    at = time.monotonic()
    process.wait(timeout=30)
    took = time.monotonic() - at
    reader.join(5)
    shown = b"".join(screen).decode()
    assert process.returncode == 130
    assert took < 1.3
    assert "interrupt again" in shown
    assert "ag2-parallel resume" in shown
    os.close(parent)


def test_the_journal_of_a_terminated_run_is_whole(folder):
    write(folder, "once_slow", "once_slow")
    process = start(RUN, folder)
    wait_for(folder, "t0", "t1")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    with sqlite3.connect(folder / "runs.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM tasks WHERE status IS NOT NULL").fetchall() == [(8,)]

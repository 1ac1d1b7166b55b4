"""F06, F26, F27, F40, F41: what goes wrong with files of tasks and of results."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = str(Path(__file__).parents[2] / "src")

ECHO = "def echo(ctx):\n    return ctx.prompt\n"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "work.py").write_text(ECHO)

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": SOURCES}
        command = [sys.executable, "-m", "ag2_parallel", "run", *arguments, "--out", "r.jsonl"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False, env=environment
        )

    return run


def outputs(folder):
    lines = (folder / "r.jsonl").read_text("utf-8").splitlines()
    return {row["name"]: row["output"] for row in map(json.loads, lines)}


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("t.yaml", "tasks:\n- {name: a, prompt: x, run: 'work:echo'}\n- {name: A, prompt: y, run: 'work:echo'}\n", (2, 3)),
        ("t.jsonl", '{"name": "é", "prompt": "x", "run": "work:echo"}\n{"name": "e\\u0301", "prompt": "y", "run": "work:echo"}\n', (1, 2)),
        ("t.csv", 'name,prompt,run\na,"x\nx",work:echo\na ,y,work:echo\n', (2, 4)),
    ],
)  # fmt: skip
def test_one_name_for_two_tasks_is_refused_with_both_lines(run, tmp_path, name, content, lines):
    """F06."""
    (tmp_path / name).write_text(content, "utf-8")
    done = run(name)
    assert done.returncode == 2
    assert f"{name}:{lines[0]}" in done.stderr
    assert f"{name}:{lines[1]}" in done.stderr
    assert not (tmp_path / "r.jsonl").exists()


def test_text_of_any_kind_comes_back_as_it_was(run, tmp_path):
    """F26."""
    texts = ["\U0001f378", "e\u0301", "\u202etxt", "\r\n", "\x1b[2J", "\ufeffx", "\0", "line\u2028end"]
    tasks = [{"name": f"t{at}", "prompt": text, "run": "work:echo"} for at, text in enumerate(texts)]
    half = {"name": "half", "prompt": "\ud83d", "run": "work:echo", "retry": 3}
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, [*tasks, half])))
    done = run("t.jsonl")
    assert done.returncode == 1
    found = outputs(tmp_path)
    assert [found[f"t{at}"] for at in range(len(texts))] == texts
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text("utf-8").split("\n") if line]
    bad = next(row for row in rows if row["name"] == "half")
    assert (bad["attempts"], bad["error"]["kind"]) == (1, "configuration")
    assert "\x1b" not in done.stdout + done.stderr


def test_very_large_prompts_are_run_whole_and_shown_short(run, tmp_path):
    """F27."""
    cell, line = 'said "so",\nand; more ' * 15_000, "ü" * 5_000_000
    quoted = cell.replace('"', '""')
    (tmp_path / "t.csv").write_text(
        f'name,prompt,run\na,x,work:echo\nb,y,work:echo\nc,"{quoted}",work:echo\n', newline=""
    )
    (tmp_path / "u.jsonl").write_text(
        json.dumps({"name": "d", "prompt": line, "run": "work:echo"}, ensure_ascii=False), "utf-8"
    )
    done = run("t.csv", "u.jsonl", "--workers", "4")
    assert done.returncode == 0, done.stderr
    found = {name: hashlib.sha256(text.encode()).digest() for name, text in outputs(tmp_path).items()}
    assert found["c"] == hashlib.sha256(cell.encode()).digest()
    assert found["d"] == hashlib.sha256(line.encode()).digest()
    assert len(done.stdout) + len(done.stderr) < 5000
    assert (tmp_path / "r.jsonl").stat().st_size < 3 * (len(cell) + len(line.encode()))


def test_a_spreadsheet_s_file_is_read(run, tmp_path):
    """F40."""
    text = "\ufeffname;prompt;run\r\n0123;no;work:echo\r\n12:30;1,5;work:echo\r\n"
    (tmp_path / "t.csv").write_text(text, "utf-8", newline="")
    assert run("t.csv").returncode == 0
    assert outputs(tmp_path) == {"0123": "no", "12:30": "1,5"}


def test_the_exit_code_tells_failures(run, tmp_path):
    """F41."""
    (tmp_path / "t.csv").write_text("name,prompt,run\na,x,work:echo\n")
    assert run("t.csv").returncode == 0
    (tmp_path / "u.yaml").write_text('tasks: [{name: a, prompt: x, run: "work:echo", timeout: soon}]\n')
    assert run("u.yaml").returncode == 2

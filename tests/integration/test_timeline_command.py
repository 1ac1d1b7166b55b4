"""`ag2-parallel timeline`, as a shell runs it."""

import subprocess
import sys

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask
from made_up_run import made_up_run


def timeline(*arguments, cwd):
    command = [sys.executable, "-m", "ag2_parallel", "timeline", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=50, check=False)


@pytest.fixture
def results(tmp_path):
    made_up_run(6).to_json(tmp_path / "results.json")
    return tmp_path


def test_results_become_a_page_beside_them(results):
    done = timeline("results.json", cwd=results)
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr == "ag2-parallel: results.html: RunResults(5 succeeded, 1 failed)\n"
    assert "cardiology" in (results / "results.html").read_text()


def test_or_a_picture(results):
    assert timeline("results.json", "--out", "gantt.svg", cwd=results).returncode == 0
    assert "<svg" in (results / "gantt.svg").read_text()


@pytest.mark.parametrize(
    ("content", "arguments", "told"),
    [
        (None, (), "No such file"),
        ("{", (), "cannot be read as the results of a run"),
        ("[]", (), 'there is no list "results"'),
        ('{"results": [{"name": "a"}]}', (), "this is not a task's result: KeyError: 'status'"),
        ('{"run_id": "a", "results": []}', ("b",), "holds run 'a', not 'b'"),
        ('{"run_id": "a", "results": []}', ("--out", "run.pdf"), "use .html, .svg or .png"),
        ('{"run_id": "a", "results": []}', ("--out", "nowhere/run.html"), "No such file"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_line(tmp_path, content, arguments, told):
    if content is not None:
        (tmp_path / "odd.json").write_text(content)
    done = timeline("odd.json", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_a_run_of_a_journal_becomes_the_same_page(tmp_path):
    journal = tmp_path / "runs.db"
    runner = ParallelAgentRunner(journal=journal, progress=False, max_workers=2)
    runner.run([ParallelTask("early", run=lambda ctx: "the first run")], run_id="first")
    runner.run([ParallelTask(f"late {n}", run=lambda ctx: 1 / ctx.index) for n in range(3)], run_id="second")
    done = timeline("runs.db", cwd=tmp_path)
    assert done.stderr == "ag2-parallel: runs.html: RunResults(2 succeeded, 1 failed)\n"
    assert "late 2" in (tmp_path / "runs.html").read_text()
    assert timeline("runs.db", "first", "--out", "first.html", cwd=tmp_path).returncode == 0
    assert "the first run" in (tmp_path / "first.html").read_text()
    done = timeline("runs.db", "frist", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'first'?" in done.stderr

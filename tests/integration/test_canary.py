"""M8 on the command line: `--canary`, `--max-cost`, `--yes`, and who is asked."""

import json
import os
import pty
import re
import sys

import pytest
from command_line import CODE, SOURCES, rows_of, run

from ag2_parallel.testing import ModelServer, Reply

CONFIG = """
llm_config: {config_list: [{model: m, base_url: "${URL}", api_key: none%s}]}
options: {max_workers: 4, model_retry: 1}
"""
PRICED = CONFIG % ", price: [1.0, 1.0]"
TASKS = "tasks:\n" + "".join(f"  - {{name: t{n}, prompt: case {n}}}\n" for n in range(12))


@pytest.fixture
def server():
    with ModelServer(Reply("fine", usage=(60, 40))) as server:
        yield server


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text(CODE)
    (tmp_path / "t.yaml").write_text(PRICED + TASKS)
    return tmp_path


def canary(folder, server, *options, given=None, file="t.yaml"):
    return run(["run", file, "--canary", "3", "--out", "r.jsonl", *options], folder, given, URL=server.base_url)


def names(folder):
    return sorted(row["name"] for row in rows_of(folder / "r.jsonl"))


ALL = sorted(f"t{n}" for n in range(12))


@pytest.mark.parametrize("options", [["--yes"], ["--max-cost", "2"]])
def test_the_run_goes_on_and_no_call_is_made_twice(folder, server, options):
    code, out, err = canary(folder, server, *options)
    assert code == 0, err
    assert "forecast for 12 tasks, 4 at once, from a sample of 3" in err
    assert "cost    $1.2 ($0.9" in err  # three alike are no proof that the others are, too
    assert re.search(r"workers past \d+ the time improves by less than 5 %", err)
    assert server.ledger.count == 12
    assert names(folder) == ALL
    assert "t11" in out


def test_a_run_that_may_cost_too_much_stops_after_the_sample(folder, server):
    code, _, err = canary(folder, server, "--max-cost", "1.1")
    assert code == 2
    assert "the run may cost $1.6" in err
    assert " --max-cost is $1.1; to go on all the same, give --yes" in err
    assert "with --journal the sample would be kept" in err
    assert server.ledger.count == 3
    assert len(names(folder)) == 3


def test_where_nobody_can_be_asked_it_is_said_what_to_give(folder, server):
    code, _, err = canary(folder, server)
    assert code == 2
    assert "nobody can be asked here; to go on all the same, give --yes, or --max-cost" in err
    (folder / "free.yaml").write_text(CONFIG % "" + TASKS)
    code, _, err = canary(folder, server, file="free.yaml")
    assert code == 2
    assert "cost    not known: there is no price for m" in err


def test_with_a_journal_the_sample_is_the_first_part_of_the_run(folder, server):
    code, _, err = canary(folder, server, "--journal", "runs.db", "--run-id", "night")
    assert code == 2
    assert "the sample is kept: ag2-parallel resume runs.db night" in err
    code, _, err = run(["resume", "runs.db", "night"], folder, URL=server.base_url)
    assert code == 0, err
    assert server.ledger.count == 12
    assert names(folder) == ALL
    code, _, err = canary(folder, server, "--journal", "runs.db", "--run-id", "other", "--yes")
    assert code == 0, err
    assert "goes on: 3 of its results stand, 0 tasks run again" in err
    assert server.ledger.count == 24
    assert names(folder) == sorted(2 * ALL)


def test_a_resumed_run_has_the_limit_of_the_first(folder, server):
    canary(folder, server, "--journal", "runs.db", "--run-id", "night", "--max-cost", "0.5")
    code, _, err = run(["resume", "runs.db", "night", "--workers", "1"], folder, URL=server.base_url)
    assert code == 1, err
    assert server.ledger.count == 3 + 5


def test_max_cost_stops_a_run_without_a_canary_too(folder, server):
    code, _, err = run(["run", "t.yaml", "--max-cost", "0.45", "--workers", "1"], folder, URL=server.base_url)
    assert code == 1, err
    assert server.ledger.count == 5


def test_a_sample_that_failed_is_told_and_the_rest_waits(folder, server):
    (folder / "bad.yaml").write_text(
        "tasks:\n" + "".join(f"  - {{name: t{n}, run: 'work:broken', prompt: x}}\n" for n in range(9))
    )
    code, _, err = canary(folder, server, "--max-cost", "5", file="bad.yaml")
    assert code == 2
    assert "from a sample of 3, 3 of which failed" in err
    assert "ValueError: no such thing" in err
    assert "since all of it failed" in err


def test_a_sample_that_is_all_there_is_needs_no_answer(folder, server):
    code, _, err = run(["run", "t.yaml", "--canary", "50"], folder, URL=server.base_url)
    assert code == 0, err
    assert server.ledger.count == 12


@pytest.mark.parametrize("data", ["d.csv", "-"])
def test_rows_of_files_are_counted_and_pipes_are_read_ahead(folder, server, data):
    (folder / "a.yaml").write_text(PRICED)
    rows = "id,text\n" + "".join(f"{n},case {n}\n" for n in range(30))
    (folder / "d.csv").write_text(rows)
    arguments = ["map", "a.yaml", data, "--prompt", "Say {{ text }}", "--canary", "4", "--max-cost", "4"]
    code, _, err = run([*arguments, "--out", "r.jsonl"], folder, rows if data == "-" else None, URL=server.base_url)
    assert code == 0, err
    assert "forecast for 30 tasks, 4 at once, from a sample of 4" in err
    assert server.ledger.count == 30
    assert len(set(names(folder))) == 30


def test_a_pipe_without_an_end_in_sight_is_not_gone_on_with(folder, server):
    (folder / "a.yaml").write_text('defaults: {run: "work:quick"}\n')
    rows = "text\n" + "".join(f"case {n}\n" for n in range(1200))
    arguments = ["map", "a.yaml", "-", "--prompt", "{{ text }}", "--canary", "2", "--format", "jsonl"]
    code, out, err = run([*arguments, "--max-cost", "9"], folder, rows)
    assert code == 2
    assert "forecast for the first 1,000 tasks, with more to come" in err
    assert "it is not known how many tasks there are" in err
    assert len(out.splitlines()) == 2
    code, out, _ = run([*arguments, "--yes"], folder, rows)
    assert code == 0
    assert len({json.loads(line)["name"] for line in out.splitlines()}) == 1200


@pytest.mark.parametrize(("answer", "code", "calls"), [("y\n", 0, 12), ("n\n", 2, 3), ("\n", 2, 3), ("\x03", 130, 3)])
def test_on_a_terminal_somebody_is_asked(folder, server, answer, code, calls):
    command = ["-m", "ag2_parallel", "run", "t.yaml", "--canary", "3", "--quiet", "--out", "r.jsonl"]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ |= {"PYTHONPATH": SOURCES, "URL": server.base_url}
        os.execv(sys.executable, [sys.executable, *command])
    shown = b""
    try:
        while b"[y/N]" not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, answer.encode())
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # the terminal's end
        pass
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    assert b"run the 9 tasks that are left? [y/N]" in shown
    assert os.waitstatus_to_exitcode(status) == code, shown
    assert server.ledger.count == calls
    assert len(names(folder)) == calls


def test_a_run_is_drawn(folder, server):
    code, _, err = canary(folder, server, "--yes", "--timeline", "run.html")
    assert code == 0, err
    page = (folder / "run.html").read_text()
    assert all(f'"t{n}"' in page for n in range(12))
    code, _, err = run(["run", "t.yaml", "--timeline", "run.pdf"], folder, URL=server.base_url)
    assert (code, server.ledger.count) == (2, 12)
    assert "a file ending in .html, .svg or .png is drawn" in err


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("nowhere/run.html", "--timeline nowhere/run.html: there is no folder nowhere"),
        ("folder.html", "--timeline folder.html: it cannot be written there"),
        ("run.png", 'timeline: pictures need matplotlib: pip install "ag2-parallel[plots]"'),
    ],
)
def test_a_timeline_that_cannot_be_drawn_is_found_before_anything_runs(folder, server, path, told):
    (folder / "matplotlib.py").write_text("raise ImportError('not installed')\n")
    (folder / "folder.html").mkdir()
    code, _, err = run(["run", "t.yaml", "--timeline", path], folder, URL=server.base_url)
    assert (code, server.ledger.count) == (2, 0)
    assert told in err


def test_a_dry_run_says_what_the_journal_remembers(folder, server):
    (folder / "quick.yaml").write_text("tasks:\n" + "  - {name: a, run: 'work:quick', prompt: x}\n")
    dry = ["run", "quick.yaml", "--dry-run", "--journal", "runs.db", "--format", "json"]
    code, out, _ = run(dry, folder)
    assert (code, json.loads(out)["forecast"]) == (0, None)
    assert not (folder / "runs.db").exists()
    assert run(["run", "quick.yaml", "--journal", "runs.db"], folder)[0] == 0
    _, out, _ = run(dry, folder)
    found = json.loads(out)["forecast"]
    assert found["remembered"] == 1
    assert 0 < found["wall"]["low"] <= found["wall"]["expected"] <= found["wall"]["high"]
    _, out, _ = run(dry[:-2], folder)
    assert "by 1 task that the journal remembers" in out

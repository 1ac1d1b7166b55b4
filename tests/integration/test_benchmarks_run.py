"""The benchmarks run at a small size; nothing is said about their figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN_ALL = Path(__file__).parents[2] / "benchmarks" / "run_all.py"


def run_all(*arguments):
    command = [sys.executable, str(RUN_ALL), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.timeout(120)
def test_quick_comparisons_print_their_tables_and_keep_every_figure(tmp_path):
    into = tmp_path / "figures.json"
    done = run_all("--quick", "--only", "no_op_tasks", "single_agents", "--json", str(into))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for wanted in ("no_op_tasks: ", "single_agents: ", "by hand ", "thread pool ", "runner ", "CPU "):
        assert any(line.startswith(wanted) for line in lines), wanted
    assert sum(line.endswith(("holds", "falls short")) for line in lines) == 3
    assert lines[-1].endswith("of 3 requirements hold")

    figures = json.loads(into.read_text())["comparisons"]
    rounds = figures["single_agents"]["sides"]
    assert {label: len(measures) for label, measures in rounds.items()} == dict.fromkeys(rounds, 1)
    assert [measures[0]["calls_per_task"] for measures in rounds.values()] == [1.0, 1.0, 1.0]
    assert all(measures[0]["cpu"] > 0 < measures[0]["rss"] for measures in rounds.values())


def test_an_unknown_comparison_is_refused_by_name():
    done = run_all("--only", "no_such")
    assert done.returncode == 2
    assert "no_such" in done.stderr
    assert "single_agents" in done.stderr

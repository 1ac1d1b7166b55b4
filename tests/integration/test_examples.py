"""Every file of `examples/` runs, offline, and says what it should."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ag2_parallel.testing import ModelServer

EXAMPLES = Path(__file__).parents[2] / "examples"

EXPECTED = {
    "quickstart": [
        r"databases: succeeded in [\d.]+ s: \[scripted\] You are an expert for databases\. What is new this year\?",
        r"networks: succeeded in .*",
        r"3 model calls, [\d.]+ s of work",
    ],
    "template_agent": [
        r"a rose is a rose: \[scripted\] It has 5 words\.",
        r"to be or not to be: \[scripted\] It has 6 words\.",
        r"the template itself has said 0 messages",
    ],
    "factory": [r"into Hindi: translator_1_1 said: \[scripted\] done as told: Translate into Hindi\."],
    "team": [r"volcanoes: succeeded, max_turns", r"    critic: \[scripted\] critic has spoken"],
    "dependencies": [r"draft: \[scripted\] about 13 words read", r"length: 30", r"last to start: length"],
    "errors_and_retries": [
        r"answered: succeeded after 1 attempts, answered",
        r"broken: failed after 1 attempts, error",
        r"flaky: succeeded after 3 attempts, completed",
        r"slow: timed_out after 1 attempts, deadline",
        r"after broken: skipped after 0 attempts, dependency",
        r"  broken: agent: ValueError: no such record",
        r"2 succeeded, 3 did not",
        r"fail_fast: RunResults\(1 failed, .*, stopped: fail_fast\)",
    ],
    "structured_output": [
        r"letter 1: Review\(product='kettle', stars=4\) after 2 model calls",
        r"letter 2: Review\(product='lamp', stars=4\) after 1 model calls",
    ],
    "ag2_agents": [
        r"a rose is a rose: \[scripted\] It has 5 words\.",
        r"team: \[scripted\] The writer writes\.",
        r"the team: user > planner > writer",
    ],
    "diagnostic_teams": [
        r"drug interactions: succeeded, [\d.]+ s, 4 calls: \[scripted answer\] The supervisor of the drug .*",
        r"assessment: succeeded, [\d.]+ s, 1 calls: \[scripted answer\] The senior physician decides",
        r"one after another [\d.]+ s, in parallel [\d.]+ s: \d\d % less",
        r"longest: literature, [\d.]+ s",
    ],
}


def run(name, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**clean, **environment},
    )


def test_every_example_is_listed_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*EXPECTED, "example_model"}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_runs_offline(name):
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    for pattern in EXPECTED[name]:
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, done.stdout)


@pytest.mark.parametrize("name", ["quickstart", "diagnostic_teams"])
def test_an_example_asks_the_model_of_the_environment(name):
    with ModelServer("from your own model", models=("mine",)) as server:
        done = run(name, OPENAI_MODEL="mine", OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="sk-mine")
        assert server.ledger.count > 0
        assert {request.body["model"] for request in server.ledger.requests} == {"mine"}
    assert done.returncode == 0, done.stderr
    assert "from your own model" in done.stdout


def test_the_two_teams_of_the_command_line_run(tmp_path):
    with ModelServer("a finding", models=("mine",)) as server:
        done = subprocess.run(
            [sys.executable, "-m", "ag2_parallel", "run", str(EXAMPLES / "cases" / "teams.yaml"), "--out", "r.csv"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={
                **os.environ,
                "OPENAI_MODEL": "mine",
                "OPENAI_BASE_URL": server.base_url,
                "OPENAI_API_KEY": "sk-mine",
                "PYTHONPATH": str(EXAMPLES.parent / "src"),
            },
        )
        assert server.ledger.count == 4 * 3 + 4 * 2
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 9

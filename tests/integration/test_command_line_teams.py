"""P16, S25: teams of task files, run by the command line against a model server."""

import csv
import json
import os
from pathlib import Path

import pytest
from command_line import CODE, KEY, TEAMS, rows_of, run

from ag2_parallel.testing import ModelServer, ModelServerProcess, Reply, ToolCall

EXAMPLE = Path(__file__).parents[2] / "examples" / "cases"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text(CODE)
    return tmp_path


@pytest.mark.timeout(240)
def test_two_teams_and_200_cases_run_from_an_empty_folder_with_one_command(tmp_path):
    """S25."""
    here, files = tmp_path / "empty", tmp_path / "files"
    here.mkdir()
    files.mkdir()
    (files / "teams.yaml").write_bytes((EXAMPLE / "teams.yaml").read_bytes())
    with (files / "cases.csv").open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file, delimiter=";", lineterminator="\r\n")
        table.writerow(["id", "age", "complaint", "medicines"])
        table.writerows(
            [f"{n:04}", n % 90, f"complaint {n};\nsecond line", "aspirin" if n % 2 else ""] for n in range(200)
        )
    with ModelServerProcess("scripted", models=("gpt-4o-mini",)) as server:
        code, out, err = run(
            ["run", files / "teams.yaml", "--out", "r.jsonl", "--workers", "16"],
            here, patience=200, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=KEY,
        )  # fmt: skip
        ledger = server.ledger()
    assert code == 0, err
    assert os.listdir(here) == ["r.jsonl"]
    rows = rows_of(here / "r.jsonl")
    assert {row["name"] for row in rows} == {
        f"{n:04} {team}" for n in range(200) for team in ("diagnosis", "treatment")
    }
    assert {row["status"] for row in rows} == {"succeeded"}
    assert {row["usage"]["calls"] for row in rows if row["group"] == "diagnosis"} == {3}
    assert {row["usage"]["calls"] for row in rows if row["group"] == "treatment"} == {2}
    assert ledger["answered"] == 200 * 5
    assert "400 results; 0 that did not succeed are shown" in out
    assert KEY not in out + err + (here / "r.jsonl").read_text()


def speak(request):
    """Says who speaks; the counter calls its tool first; a selector is told the counter."""
    if "select the next role" in str(request.messages).lower():
        return "counter"
    if request.tools and request.messages[-1]["role"] != "tool":
        return Reply(tool_calls=[ToolCall("count_words", {"text": "one two three"})])
    who = (
        "counter"
        if "the counter" in request.system_text
        else "critic"
        if "the critic" in request.system_text
        else "plain"
    )
    return f"{who} after {request.messages[-1]['content']}"


def test_every_pattern_of_teams_runs_with_its_tools(folder):
    (folder / "t.yaml").write_text(TEAMS)
    with ModelServer(speak) as server:
        code, out, err = run(
            ["run", "t.yaml", "--format", "json"], folder, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=KEY
        )
    data = json.loads(out)
    results = {row["name"]: row for row in data["results"]}
    assert code == 0, (out, err)
    assert results["single"]["output"] == "counter after 3"
    assert results["plain"]["output"] == "plain after Go."

    def speakers(name):
        return [
            m.get("name")
            for m in results[name]["chat_history"]
            if not m.get("tool_calls") and m["role"] != "tool" and m.get("name") != "_Group_Tool_Executor"
        ]

    assert speakers("line")[1:] == ["counter", "critic"]
    assert speakers("circle")[1:3] == ["critic", "counter"]
    assert speakers("pair")[0] == "critic"
    assert "counter" in speakers("pair")
    assert speakers("chosen")[0] == "boss"
    assert set(speakers("chosen")[1:]) == {"critic", "counter"}
    assert speakers("asked") == ["boss", "counter", "critic"]
    assert all("3" in str(results[name]["chat_history"]) for name in ("line", "circle", "pair", "chosen"))
    assert data["schema_version"] == 1
    assert data["metrics"]["success_rate"] == 1


def test_re_asks_for_an_answer_that_does_not_fit_are_counted_and_capped(folder):
    """F42."""
    (folder / "form.py").write_text("from pydantic import BaseModel\nclass Form(BaseModel):\n    stars: int\n")
    (folder / "t.yaml").write_text(
        'llm_config: {config_list: [{model: m, base_url: "${OPENAI_BASE_URL}", api_key: x}]}\n'
        'tasks: [{name: a, prompt: x, output_type: "form:Form", output_retries: 2}]\n'
    )
    with ModelServer("no stars") as server:
        code, out, _err = run(["run", "t.yaml", "--format", "jsonl"], folder, OPENAI_BASE_URL=server.base_url)
        assert server.ledger.count == 3
    row = json.loads(out)
    assert (code, row["status"], row["error"]["kind"], row["usage"]["calls"]) == (1, "failed", "invalid_answer", 3)
    assert "2" in row["error"]["message"]

"""P16: runs of the command line, each a process of its own."""

import csv
import json
import signal
import time

import pytest
from command_line import CODE, KEY, TEAMS, rows_of, run, start

from ag2_parallel.cli.task_files.models import file_schema
from ag2_parallel.testing import Fault, ModelServer


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text(CODE)
    return tmp_path


MIXED = """
tasks:
  - {name: good, run: "work:quick", prompt: it}
  - {name: bad, run: "work:broken", prompt: x}
  - {name: after, run: "work:quick", prompt: x, depends_on: [bad]}
"""


def test_standard_output_has_data_and_nothing_else(folder):
    """F41."""
    (folder / "t.yaml").write_text(MIXED)
    code, out, err = run(["run", "t.yaml", "--format", "jsonl", "--run-id", "mine"], folder)
    rows = {row["name"]: row for row in map(json.loads, out.splitlines())}
    assert code == 1
    assert {name: row["status"] for name, row in rows.items()} == {
        "good": "succeeded",
        "bad": "failed",
        "after": "skipped",
    }
    assert rows["good"]["output"] == "did it"
    assert {row["run_id"] for row in rows.values()} == {"mine"}
    assert "ag2-parallel: done in" in err
    code, out, err = run(["run", "t.yaml", "--quiet"], folder)
    assert (code, err) == (1, "")
    assert "no such thing" in out


def test_results_that_no_table_shows_are_never_lost(folder):
    tasks = [{"name": f"t{n}", "run": "work:quick", "prompt": str(n)} for n in range(120)]
    (folder / "t.json").write_text(json.dumps({"tasks": tasks}))
    code, out, err = run(["run", "t.json", "--run-id", "many"], folder)
    assert code == 0, err
    assert "120 results" in out
    assert "all results are in ag2-parallel-many.jsonl" in err
    assert {row["output"] for row in rows_of(folder / "ag2-parallel-many.jsonl")} == {f"did {n}" for n in range(120)}
    (folder / "few.json").write_text(json.dumps({"tasks": tasks[:100]}))
    assert run(["run", "few.json", "--journal", "r.db"], folder)[0] == 0
    assert run(["run", "few.json"], folder)[0] == 0
    assert sorted(path.name for path in folder.glob("ag2-parallel-*")) == ["ag2-parallel-many.jsonl"]
    assert run(["export", "r.db", "--out", "rows.csv"], folder)[0] == 0
    with (folder / "rows.csv").open(encoding="utf-8", newline="") as file:
        assert {row["name"] for row in csv.DictReader(file)} == {f"t{n}" for n in range(100)}


@pytest.mark.parametrize(
    ("strategy", "code", "written"),
    [("collect", 1, {"good", "bad", "after"}), ("fail_fast", 1, {"good", "bad", "after"}), ("ignore", 1, {"good"})],
)
def test_strategies_for_failures(folder, strategy, code, written):
    (folder / "t.yaml").write_text(MIXED)
    done = run(["run", "t.yaml", "--on-error", strategy, "--workers", "1", "--out", "r.jsonl"], folder)
    assert done[0] == code
    assert {row["name"] for row in rows_of(folder / "r.jsonl")} == written


def test_a_file_s_own_strategy_holds(folder):
    (folder / "t.yaml").write_text(MIXED + "options: {handle_errors: ignore}\n")
    assert run(["run", "t.yaml", "--out", "r.jsonl"], folder)[0] == 1
    assert {row["name"] for row in rows_of(folder / "r.jsonl")} == {"good"}


def test_exit_codes_of_what_never_ran(folder):
    """F41: nothing is written, not even the file for the results."""
    (folder / "t.yaml").write_text("tasks: [{name: a, prompt: x}]\n")
    code, out, err = run(["run", "t.yaml", "--out", "r.jsonl"], folder)
    assert (code, out) == (2, "")
    assert err.startswith(
        'ag2-parallel: error: t.yaml:1:9: tasks[0]: task "a": it has none of agent_config, agent and run'
    )
    (folder / "d.csv").write_text("name,prompt,run\na,x,work:quick\nA,y,work:quick\n")
    code, out, err = run(["run", "d.csv", "--out", "r.jsonl"], folder)
    assert (code, out) == (2, "")
    assert 'd.csv:3: the task name "A" is used at d.csv:2 already' in err
    assert not (folder / "r.jsonl").exists()


def test_a_data_set_that_breaks_off_fails_the_run_and_keeps_what_there_is(folder):
    (folder / "t.yaml").write_text('tasks_from: {data: d.json, run: "work:quick", prompt_template: "{{ x }}"}\n')
    (folder / "d.json").write_text('[{"x": 1}, {"x": 2}')
    code, _out, err = run(["run", "t.yaml", "--out", "r.jsonl"], folder)
    assert code == 3
    assert "d.json, line 1: no valid JSON" in err
    assert [row["output"] for row in rows_of(folder / "r.jsonl")] == ["did 1", "did 2"]


MAP = 'defaults: {run: "work:quick"}\n'


@pytest.mark.parametrize("data", ["d.csv", "d.jsonl", "-", "texts"])
def test_map_runs_a_task_for_each_row(folder, data):
    (folder / "a.yaml").write_text(MAP)
    (folder / "d.csv").write_text("name;text\n0123;one\nno;two\n")
    (folder / "d.jsonl").write_text('{"name": "0123", "text": "one"}\n{"name": "no", "text": "two"}\n')
    (folder / "texts").mkdir()
    (folder / "texts" / "0123.txt").write_text("one")
    (folder / "texts" / "no.txt").write_text("two")
    given = "name,text\n0123,one\nno,two\n" if data == "-" else None
    arguments = ["map", "a.yaml", data, "--prompt", "Say {{ text }}", "--name", "{{ name }}", "--out", "out.csv"]
    code, _, err = run(arguments, folder, given)
    assert code == 0, err
    with (folder / "out.csv").open() as file:
        assert sorted((row["name"], row["output"]) for row in csv.DictReader(file)) == [
            ("0123", "did Say one"),
            ("no", "did Say two"),
        ]


@pytest.mark.parametrize(
    ("data", "started", "done"), [("d.csv", "3 tasks", "[3/3]"), ("d.jsonl", "3 tasks", "[3/3]"), ("-", "tasks as they come", None)]
)  # fmt: skip
def test_map_knows_how_many_rows_a_file_has(folder, data, started, done):
    (folder / "a.yaml").write_text(MAP)
    (folder / "d.csv").write_text('text\none\n\n"two\nlines"\nth"ree,\n')
    (folder / "d.jsonl").write_text('{"text": "one"}\n\n{"text": "two"}\n{"text": broken\n')
    given = (folder / "d.csv").read_text() if data == "-" else None
    _, _, err = run(["map", "a.yaml", data, "--prompt", "Say {{ text }}"], folder, given)
    assert f"ag2-parallel: {started}, " in err
    assert done is None or f"ag2-parallel: {done} " in err


def test_map_names_bad_rows_and_missing_columns(folder):
    """F40."""
    (folder / "a.yaml").write_text(MAP)
    (folder / "d.csv").write_bytes(b"\xef\xbb\xbfid;text\r\n1;one\r\n2;caf\xe9\r\n3\r\n4;four\r\n")
    code, out, err = run(["map", "a.yaml", "d.csv", "--prompt", "{{ txt }}"], folder)
    assert (code, out) == (2, "")
    assert "prompt: the template needs 'txt', and d.csv has the columns id, text; did you mean 'text'?" in err
    code, _, err = run(["map", "d.csv", "a.yaml", "--prompt", "{{ text }}"], folder)
    assert (code, "d.csv: the task file with the model and the agents comes first" in err) == (2, True)
    code, _, _ = run(["map", "a.yaml", "d.csv", "--prompt", "{{ text }}", "--out", "r.jsonl"], folder)
    assert code == 1
    told = {row["name"]: row["error"]["message"] for row in rows_of(folder / "r.jsonl") if row["error"]}
    assert "row 2 (line 3) of d.csv: column 'text': byte 0xe9" in told["row-000002"]
    assert "row 3 (line 4) of d.csv: has 1 cells" in told["row-000003"]
    code, out, err = run(["map", "a.yaml", "d.csv", "--prompt", "{{ text }}", "--dry-run"], folder)
    assert code == 2
    assert "4 tasks" in out
    assert "row 2 (line 3) of d.csv" in err
    assert "row 3 (line 4) of d.csv" in err
    code, *_ = run(
        ["map", "a.yaml", "d.csv", "--prompt", "{{ id }}", "--encoding", "cp1252", "--name", "{{ id }}"], folder
    )
    assert code == 1


def test_a_dry_run_shows_the_order_and_calls_no_model(folder):
    """F33: the key is masked."""
    (folder / "t.yaml").write_text(
        TEAMS + "  - {name: urgent, priority: 5, depends_on: [plain], timeout: 7}\n" + "options: {max_workers: 3}\n"
    )
    with ModelServer() as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY}
        code, out, err = run(
            ["run", "t.yaml", "--dry-run", "--format", "json", "--timeout", "9"], folder, **environment
        )
        assert code == 0, err
        shown = json.loads(out)
        code, table, err = run(["run", "t.yaml", "--dry-run"], folder, **environment)
        assert server.ledger.count == 0
    assert [task["name"] for task in shown["tasks"]] == [
        "pair",
        "circle",
        "chosen",
        "line",
        "asked",
        "single",
        "plain",
        "urgent",
    ]
    assert (shown["count"], shown["max_workers"], shown["options"]["timeout"]) == (8, 3, 9.0)
    assert shown["options"]["llm_config"]["config_list"][0]["api_key"] == "***"
    assert shown["tasks"][1]["agent"] == "round_robin: critic, counter"
    assert "8 tasks; 3 at once; no model was called" in table
    assert KEY not in out + table + err


def test_a_dry_run_shows_the_timeout_that_holds(folder):
    (folder / "t.yaml").write_text(
        'defaults: {run: "work:quick", prompt: x}\ntasks: [{name: own, timeout: 7}, {name: usual}]\n'
    )

    def timeouts(*options):
        table = run(["run", "t.yaml", "--dry-run", *options], folder)[1]
        cells = [[cell.strip() for cell in line.split("│")] for line in table.splitlines() if line.startswith("│")]
        rows = json.loads(run(["run", "t.yaml", "--dry-run", "--format", "json", *options], folder)[1])["tasks"]
        return {row[1]: row[-2] for row in cells}, [row["timeout"] for row in rows]

    assert timeouts() == ({"own": "7 s", "usual": "none"}, [7.0, None])
    assert timeouts("--timeout", "90") == ({"own": "7 s", "usual": "90 s"}, [7.0, 90.0])


def test_secrets_that_a_file_itself_has(folder):
    """F33: also half ones, where a prompt is cut, and in addresses and cookies."""
    key, password, cookie = "swordfish-of-the-house", "correct-horse-battery", "staple-of-the-session"
    say = f"{key} {password} {cookie}"
    with ModelServer(lambda request: f"I know {say}") as server:
        server.fail_next(Fault.status(400, message=f"not with {say}"))
        address = server.base_url.replace("http://", f"http://me:{password}@")
        entry = {"model": "m", "api_key": key, "base_url": address, "default_headers": {"Cookie": f"sid={cookie}"}}
        prompts = ["x" * length + f" {key}" for length in range(58, 80)] + [say]
        tasks = [{"name": f"t{at}", "prompt": prompt} for at, prompt in enumerate(prompts)]
        (folder / "t.json").write_text(json.dumps({"llm_config": {"config_list": [entry]}, "tasks": tasks}))
        (folder / "bad.json").write_text(
            json.dumps(
                {"llm_config": {"config_list": [entry]}, "tasks": [{"name": key, "depends_on": [password], "x": 1}]}
            )
        )
        told = [run(["run", "t.json", "--dry-run", "--format", form], folder) for form in ("table", "json", "jsonl")]
        told += [
            run(["doctor", "t.json"], folder),
            run(["doctor", "bad.json"], folder),
            run(["run", "bad.json"], folder),
        ]
        told += [run(["run", "t.json", "--out", "r.jsonl", "--timeline", "p.html", "--journal", "j.db"], folder)]
        told += [run(["show", "j.db"], folder), run(["doctor", "--base-url", f"{address}?key={key}"], folder)]
    blob = repr(told) + (folder / "r.jsonl").read_text() + (folder / "p.html").read_text()
    assert "I know *** *** ***" in blob
    assert "not with *** *** ***" in blob
    assert not [secret for secret in (key, password, cookie) if secret[:8] in blob]


def test_keys_are_in_no_output(folder):
    """F33: also where a server repeats the key in its error, and a task in its answer."""
    (folder / "t.yaml").write_text(
        'llm_config: {config_list: [{model: m, base_url: "${OPENAI_BASE_URL}", api_key: "${MY_SECRET}"}]}\n'
        "tasks:\n  - {name: a, prompt: x}\n  - {name: b, prompt: x, metadata: 'with ${MY_SECRET}', run: 'work:quick'}\n"
    )
    key = "swordfish-of-the-house"
    with ModelServer(f"I know {key}") as server:
        server.fail_next(Fault.status(401, message=f"bad key {key}"))
        environment = {"OPENAI_BASE_URL": server.base_url, "MY_SECRET": key}
        first = run(["run", "t.yaml", "--out", "r.jsonl", "--workers", "1"], folder, **environment)
        second = run(["run", "t.yaml", "--out", "r.jsonl", "--format", "json"], folder, **environment)
    assert (first[0], second[0]) == (1, 0)
    assert key not in str(first) + str(second) + (folder / "r.jsonl").read_text()
    assert "I know ***" in second[1]


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.02)


SLOW = """
options: {max_workers: 2}
tasks:
  - {name: done, run: "work:quick", prompt: it, priority: 1}
  - {name: a, run: "work:slow", prompt: x}
  - {name: b, run: "work:slow", prompt: x}
  - {name: c, run: "work:slow", prompt: x}
"""


@pytest.mark.parametrize(("signals", "code"), [([signal.SIGINT, signal.SIGINT], 130), ([signal.SIGTERM], 143)])
def test_an_interrupted_run_has_written_what_there_is(folder, signals, code):
    """F24."""
    (folder / "t.yaml").write_text(SLOW)
    with start(["run", "t.yaml", "--out", "r.jsonl"], folder) as process:
        wait_for(folder / "started-a", process)
        wait_for(folder / "started-b", process)
        lines = []
        for each in signals:
            process.send_signal(each)
            while not any(word in (line := process.stderr.readline()) for word in ("interrupted", "terminated")):
                assert line, lines
                lines.append(line)
        _, err = process.communicate(timeout=20)
    assert process.returncode == code, err
    status = {row["name"]: row["status"] for row in rows_of(folder / "r.jsonl")}
    assert status == {"done": "succeeded", "a": "cancelled", "b": "cancelled", "c": "skipped"}


def test_results_of_a_second_run_are_added_behind_a_torn_line(folder):
    (folder / "t.yaml").write_text(MIXED)
    run(["run", "t.yaml", "--out", "r.jsonl", "--run-id", "one"], folder)
    with (folder / "r.jsonl").open("a") as file:
        file.write('{"name": "torn')
    _, _, err = run(["run", "t.yaml", "--out", "r.jsonl", "--run-id", "two"], folder)
    assert "r.jsonl ended in half a line of 14 bytes, which was cut off" in err
    assert [row["run_id"] for row in rows_of(folder / "r.jsonl")] == ["one"] * 3 + ["two"] * 3


def test_a_reader_that_goes_away_stops_the_run(folder):
    (folder / "a.yaml").write_text(MAP)
    (folder / "d.csv").write_text("x\n" + "1\n" * 100_000)
    with start(["map", "a.yaml", "d.csv", "--prompt", "{{ x }}", "--format", "jsonl"], folder) as process:
        assert json.loads(process.stdout.readline())["output"] == "did 1"
        process.stdout.close()
        err = process.stderr.read()
        process.wait(30)
    assert process.returncode == 3
    assert "standard output was closed; the run was stopped" in err
    assert "Exception" not in err


def test_the_doctor_says_what_to_do(folder):
    (folder / "t.yaml").write_text(TEAMS)
    with ModelServer(models=("m",)) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY}
        code, out, err = run(["doctor", "t.yaml", "--journal", "runs.db"], folder, **environment)
        assert code == 0, (out, err)
        gone = server.base_url
    assert "autogen 0." in out
    assert "OPENAI_API_KEY" in out
    assert "answers, 1 model, m among them" in out
    assert "runs.db can be written" in out
    code, out2, _ = run(
        ["doctor", "--base-url", gone, "--journal", "no/runs.db", "--format", "json"], folder, OPENAI_API_KEY=KEY
    )
    assert code == 1
    problems = {each["what"]: each for each in json.loads(out2) if each["state"] == "problem"}
    assert "cannot be reached" in problems[f"server {gone}"]["told"]
    assert problems["journal"]["advice"].startswith("mkdir -p ")
    assert KEY not in out + out2
    assert not list(folder.glob("runs.db*"))
    assert not list(folder.glob(".ag2*"))


def test_the_schema_is_printed(folder):
    code, out, err = run(["schema"], folder)
    assert (code, err) == (0, "")
    assert json.loads(out) == file_schema()
    assert {"llm_config", "agents", "teams", "tasks", "tasks_from", "defaults", "options"} <= set(
        json.loads(out)["properties"]
    )

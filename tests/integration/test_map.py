"""S25, P14: a data set of cases mapped over an agent, lazily, with row errors that name the row."""

import asyncio
import itertools
import os
import subprocess
import sys

import pandas as pd
import pytest

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask, Template, tasks_from_rows
from ag2_parallel.testing import ModelServer, ScriptedAgent

pytestmark = pytest.mark.usefixtures("no_threads_left")

CASES = [{"id": "0123", "text": "fever"}, {"id": "no", "text": "cough"}, {"id": "12:30", "text": "pain"}]


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "max_workers": 4, **options})


def echo():
    return ScriptedAgent(lambda ctx: ctx.prompt)


@pytest.mark.parametrize(
    "rows",
    [CASES, iter(CASES), pd.DataFrame(CASES), (dict(row) for row in CASES)],
    ids=["list", "iterator", "frame", "generator"],
)
def test_each_row_is_a_task(rows):
    results = runner().map(echo(), rows, prompt="Summarise {{ text }}", name="{{ id }}", group="cases")
    assert {name: result.output for name, result in results.items()} == {
        "0123": "Summarise fever", "no": "Summarise cough", "12:30": "Summarise pain",
    }  # fmt: skip
    assert {result.group for result in results.values()} == {"cases"}


def test_names_are_numbered_where_none_are_given():
    assert list(runner().map(echo(), CASES, "{{ row['text'] }}")) == ["row-000001", "row-000002", "row-000003"]


def test_an_agent_config_is_asked_about_each_row():
    with ModelServer() as server:
        config = {"system_message": "Be brief.", "llm_config": server.llm_config()}
        results = runner().map(config, CASES, Template("About {{ text }}"), "{{ id }}")
        assert results.ok
        assert sorted(request.body["messages"][-1]["content"] for request in server.ledger.requests) == [
            "About cough",
            "About fever",
            "About pain",
        ]


@pytest.mark.parametrize(
    ("prompt", "name", "told"),
    [
        ("{{ txet }}", None, r"prompt: the template needs 'txet', and rows has the columns id, text; did you mean 'text'\?"),
        ("{{ text }}", "{{ nr }}-{{ id }}", "name: the template needs 'nr'"),
        ("{% for %}", None, "prompt: the template does not parse: line 1"),
        (7, None, "prompt: a int is no template"),
        ("Say {text}.", None, r"prompt: \{text\} is plain text in it, and the same for every row of rows; write \{\{ text \}\}"),
        ("{{ text }}", "{ id }", r"name: \{ id \} is plain text in it"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rows", [list, iter])
def test_a_template_that_cannot_fit_is_found_before_anything_starts(rows, prompt, name, told):
    agent = echo()
    with pytest.raises(ConfigurationError, match=told):
        runner().map(agent, rows(CASES), prompt, name)
    assert agent.calls == []


@pytest.mark.parametrize("prompt", ["Go on.", "{{ id }} {text}", "{other}", "{{ row['id'] }} {text}", '{"text": 1}'])
def test_braces_that_may_be_meant_as_they_stand_are_left_alone(prompt):
    assert runner().map(echo(), CASES, prompt).ok


def test_unknown_task_fields_are_found_too():
    with pytest.raises(ConfigurationError, match="unknown task field 'time_out'; did you mean 'timeout'"):
        runner().map(echo(), CASES, "{{ text }}", time_out=3)


def test_columns_that_a_template_asks_about_first_may_be_missing():
    prompt = "{{ text }}{% if note is defined %} ({{ note }}){% endif %}{{ more | default('') }}"
    rows = [*CASES, {"id": "4", "text": "rash", "note": "new"}]
    assert [r.output for r in runner().map(echo(), rows, prompt).values()] == ["fever", "cough", "pain", "rash (new)"]


BAD = [
    CASES[0],
    {"id": "2"},
    {"id": "3", "text": None},
    ["no row"],
    {"id": "\n", "text": "x"},
    {"id": "6", "text": "ok"},
]


def test_bad_rows_of_a_list_are_all_told_before_anything_starts():
    agent = echo()
    with pytest.raises(ConfigurationError) as caught:
        runner().map(agent, [*BAD], "{{ text }}", "{{ id }}")
    assert agent.calls == []
    assert [problem.split(" of rows: ")[0] for problem in caught.value.problems] == ["row 2", "row 3", "row 4", "row 5"]


def test_bad_rows_of_a_source_are_failed_results_that_name_the_row():
    results = runner().map(echo(), iter(BAD), "{{ text }}", "{{ id }}")
    assert [result.output for result in results.succeeded] == ["fever", "ok"]
    told = {result.index + 1: (result.error.kind, result.error.message) for result in results.failed}
    assert {kind for kind, _ in told.values()} == {"configuration"}
    assert "row 2 of rows: its prompt template does not render: 'text' is undefined" in told[2][1]
    assert "row 3 of rows: its prompt template does not render: text is empty (null)" in told[3][1]
    assert "row 4 of rows: is a list and no mapping" in told[4][1]
    assert "row 5 of rows: its name is blank" in told[5][1]


def test_templates_are_sandboxed():
    for prompt in ("{{ text.__class__.__mro__ }}", "{{ row.clear() }}"):
        row = {"text": "x"}
        (result,) = runner().map(echo(), iter([row]), prompt).failed
        assert "row 1 of rows" in result.error.message
        assert row == {"text": "x"}


def test_a_data_set_that_breaks_off_keeps_what_there_is(tmp_path):
    path = tmp_path / "cases.json"
    path.write_text('[{"text": "one"}, {"text": "two"}')
    with pytest.raises(Exception, match=r"cases\.json, line 1: no valid JSON") as caught:
        runner().map(echo(), path, "{{ text }}")
    assert [result.output for result in caught.value.results.succeeded] == ["one", "two"]


def test_the_same_tasks_can_be_streamed_and_awaited():
    tasks = tasks_from_rows(echo(), iter(CASES), "{{ text }}", "{{ id }}")
    assert sorted(result.output for result in runner().stream(tasks)) == ["cough", "fever", "pain"]
    tasks = tasks_from_rows(None, iter(CASES), "{{ text }}", run=lambda ctx: ctx.prompt)
    assert asyncio.run(runner().arun(tasks)).ok
    assert all(isinstance(task, ParallelTask) for task in tasks_from_rows(echo(), CASES, "x"))


def test_the_first_result_is_there_before_row_100_is_read():
    read = itertools.count()
    seen = [0]

    def rows():
        for number in read:
            seen[0] = number
            yield {"text": number}

    stream = runner(max_workers=8).stream(tasks_from_rows(echo(), rows(), "{{ text }}"))
    assert next(stream).ok
    assert seen[0] < 100
    stream.close()


HUNDRED_THOUSAND = """
import sys, threading, psutil
from ag2_parallel import ParallelAgentRunner, tasks_from_rows
from ag2_parallel.testing import ScriptedAgent

agent = ScriptedAgent("done")
agent.calls = type("Nothing", (), {"append": lambda self, call: None})()
runner = ParallelAgentRunner(max_workers=8, progress=False)
assert runner.map(agent, sys.argv[2], "Summarise {{ text }}", "{{ id }}").ok
rss = lambda: psutil.Process().memory_info().rss
before = peak = rss()
ended = threading.Event()
def watch():
    global peak
    while not ended.wait(0.05):
        peak = max(peak, rss())
watcher = threading.Thread(target=watch)
watcher.start()
if sys.argv[3] == "map":
    results = runner.map(agent, sys.argv[1], "Summarise {{ text }}", "{{ id }}")
    count = len(results.succeeded)
else:
    count = sum(result.ok for result in runner.stream(tasks_from_rows(agent, sys.argv[1], "Summarise {{ text }}", "{{ id }}")))
ended.set()
watcher.join()
print(count, (max(peak, rss()) - before) // 2**20)
"""


def write_cases(path, count):
    with path.open("w") as file:
        file.write("id,text\n")
        file.writelines(f'case {number},"the text of case {number}, {"x" * 200}"\n' for number in range(count))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", ["map", "stream"])
def test_a_hundred_thousand_rows_need_little_memory(tmp_path, form, soak):
    count = 100_000 if soak else 10_000
    write_cases(tmp_path / "cases.csv", count)
    write_cases(tmp_path / "few.csv", 50)
    command = [sys.executable, "-c", HUNDRED_THOUSAND, str(tmp_path / "cases.csv"), str(tmp_path / "few.csv"), form]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    succeeded, grown = map(int, done.stdout.split())
    assert succeeded == count
    assert grown < (100 if soak else 30)

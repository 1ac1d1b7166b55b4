"""What the command line says and does where something is wrong: on which stream, once, and what to do."""

import json
import signal
import sqlite3

import pytest
from command_line import CODE, rows_of, run, start, wait_until

from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import ModelServer

AGENT = """
llm_config: {config_list: [{model: MODEL, base_url: "${URL}", api_key: sk-test1234567890}]}
agents: {a: {system_message: Be brief.}}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text("print('imported')\n" + CODE)
    return tmp_path


@pytest.fixture
def url():
    with ModelServer() as server:
        yield server.base_url


def test_logs_and_prints_are_no_data(folder, url):
    """AG2 logs to standard output, such as of a key that does not look like OpenAI's; modules print as they like."""
    (folder / "t.yaml").write_text(AGENT + 'tasks: [{name: a, prompt: x}, {name: b, prompt: x, run: "work:quick"}]')
    for form in (["--format", "jsonl"], ["--format", "json"], ["--dry-run", "--format", "json"]):
        code, out, err = run(["run", "t.yaml", "--quiet", *form], folder, URL=url, OPENAI_API_KEY="sk-test1234567890")
        assert code == 0
        assert [json.loads(line) for line in (out.splitlines() if "jsonl" in form else [out])]
        assert "imported" in err
    (folder / "log.py").write_text(
        "import logging, sys\nlog = logging.getLogger('theirs')\nlog.addHandler(logging.StreamHandler(sys.stdout))\n"
        "def loud(ctx):\n    log.warning('not valid')\n    return 'x'\n"
    )
    (folder / "l.yaml").write_text('tasks: [{name: a, prompt: x, run: "log:loud"}]')
    code, out, err = run(["run", "l.yaml", "--format", "jsonl"], folder)
    assert (code, [row["output"] for row in map(json.loads, out.splitlines())]) == (0, ["x"])
    assert "not valid" in err


@pytest.mark.parametrize("dry", [[], ["--dry-run"], ["--canary", "2"]])
def test_a_price_that_is_not_known_is_refused_before_anything_starts(folder, url, dry):
    (folder / "a.yaml").write_text(AGENT)
    (folder / "d.csv").write_text("x\n" + "1\n" * 30)
    arguments = ["a.yaml", "d.csv", "--prompt", "{{ x }}", "--max-cost", "1", "--out", "r.jsonl", *dry]
    code, out, err = run(["map", *arguments], folder, URL=url)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert 'every row of d.csv: the price of model "MODEL" is not known' in err
    rows = ",".join(f"{{name: t{number}, prompt: x, agent: a}}" for number in range(1000))
    (folder / "t.yaml").write_text(f"{AGENT}tasks: [{rows}]\n")
    code, out, err = run(["run", "t.yaml", "--max-cost", "1", *dry], folder, URL=url)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert 'task "t0" and 999 more tasks: the price of model "MODEL" is not known' in err
    assert not (folder / "r.jsonl").exists()


def test_a_warning_of_the_run_is_told_once(folder, url):
    tasks = "tasks: [{name: a, prompt: x}, {name: b, prompt: x}]\noptions: {max_workers: 1, budget: {max_tokens: 1}}\n"
    (folder / "t.yaml").write_text(AGENT + tasks)
    code, _, err = run(["run", "t.yaml"], folder, URL=url)
    assert (code, err.count("nothing new starts: the run has used")) == (1, 1), err


def test_a_resumed_run_is_drawn_again(folder):
    (folder / "t.yaml").write_text('tasks: [{name: a, prompt: x, run: "work:quick"}]')
    assert run(["run", "t.yaml", "--journal", "j.db", "--timeline", "first.html"], folder)[0] == 0
    (folder / "first.html").unlink()
    assert run(["resume", "j.db"], folder)[0] == 0
    assert "<html" in (folder / "first.html").read_text()
    (folder / "first.html").unlink()
    assert run(["resume", "j.db", "--timeline", "second.html"], folder)[0] == 0
    assert (folder / "second.html").exists()
    assert not (folder / "first.html").exists()


def test_rows_of_results_have_a_timeline(folder):
    (folder / "t.yaml").write_text(
        'tasks: [{name: a, prompt: x, run: "work:quick"}, {name: b, prompt: x, run: "work:broken"}]'
    )
    for run_id in ("one", "two"):
        run(["run", "t.yaml", "--out", "r.jsonl", "--run-id", run_id], folder)
    code, _, err = run(["timeline", "r.jsonl"], folder)
    assert (code, err) == (0, "ag2-parallel: r.html: RunResults(1 succeeded, 1 failed)\n")
    assert run(["timeline", "r.jsonl", "one", "--out", "o.html"], folder)[0] == 0
    code, _, err = run(["timeline", "r.jsonl", "three"], folder)
    assert (code, "there are one, two" in err) == (2, True)
    with (folder / "r.jsonl").open("a") as file:
        file.write('{"name": "torn')
    code, _, err = run(["timeline", "r.jsonl"], folder)
    assert (code, "line 5 is no row of results" in err, "give a .json file or the journal" in err) == (2, True, True)


@pytest.mark.parametrize("content", [None, "tasks: []\n", "", "other"])
@pytest.mark.parametrize(
    "command",
    [["resume"], ["runs"], ["show"], ["export"], ["prune", "--keep-last", "1"], ["timeline"]],
    ids=lambda command: command[0],
)
def test_what_is_no_journal_is_a_wrong_command_line(tmp_path, command, content):
    if content == "other":
        with sqlite3.connect(tmp_path / "j.db") as db:
            db.execute("CREATE TABLE theirs (x)")
    elif content is not None:
        (tmp_path / "j.db").write_text(content)
    code, out, err = run([command[0], "j.db", *command[1:]], tmp_path)
    assert (code, out) == (2, "")
    assert "j.db: " in err


def test_a_wrong_agent_on_the_command_line_is_its_fault(folder, url):
    (folder / "a.yaml").write_text(AGENT)
    (folder / "d.csv").write_text("x\n1\n")
    for agent, told in (("nope", "no agent is called 'nope'; there are a"), ("work:nope", "work:nope: ")):
        code, _, err = run(["map", "a.yaml", "d.csv", "--prompt", "{{ x }}", "--agent", agent], folder, URL=url)
        assert code == 2
        assert "error: --agent" in err
        assert told in err
        assert "a.yaml" not in err


def test_an_empty_value_is_told_with_its_column(folder):
    (folder / "a.yaml").write_text('defaults: {run: "work:quick"}\n')
    (folder / "d.jsonl").write_text('{"id": "1", "text": null}\n{"id": "", "text": "x"}\n')
    arguments = ["map", "a.yaml", "d.jsonl", "--prompt", "{{ text }}", "--name", "{{ id }}", "--out", "r.jsonl"]
    assert run(arguments, folder)[0] == 1
    told = [row["error"]["message"] for row in rows_of(folder / "r.jsonl")]
    assert "text is empty (null); write {{ text or '' }} to allow it" in told[0]
    assert "its name is blank; its template's column 'id' is empty" in told[1]


SLOW = 'tasks: [{name: a, prompt: x, run: "work:slow"}]\n'


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
@pytest.mark.parametrize(
    ("sent", "words"), [(signal.SIGINT, ["interrupted:", "interrupted again:"]), (signal.SIGTERM, ["terminated:"])]
)
def test_an_interrupt_is_told_once(folder, sent, words, quiet):
    (folder / "t.yaml").write_text(SLOW)
    with start(["run", "t.yaml", "--journal", "j.db", "--run-id", "r", *quiet], folder) as process:
        wait_until((folder / "started-a").exists, process)
        process.send_signal(sent)
        lines = []
        if sent == signal.SIGINT:
            while "interrupt again" not in (line := process.stderr.readline()):
                assert line, lines
                lines.append(line)
            lines.append(line)
            process.send_signal(sent)
        lines += process.communicate(timeout=20)[1].splitlines()
    told = [line for line in lines if "imported" not in line]
    assert all(line.startswith("ag2-parallel: ") for line in told), told
    stages = [line for line in told if "nothing new starts" in line or "are stopped" in line]
    assert len(stages) == len(words)
    assert all(word in line for word, line in zip(words, stages, strict=True)), stages
    assert told[-1].startswith(
        f"ag2-parallel: {'interrupted' if sent == signal.SIGINT else 'terminated'}; go on with: "
    )


def test_one_task_is_not_several(folder):
    (folder / "t.yaml").write_text('tasks: [{name: a, prompt: x, run: "work:quick"}]')
    assert "ag2-parallel: 1 task, 1 at once" in run(["run", "t.yaml"], folder)[2]
    assert "1 task; 1 at once" in run(["run", "t.yaml", "--dry-run"], folder)[1]


def test_a_name_that_no_dependency_has_is_found_by_a_dry_run_with_its_place(folder):
    (folder / "t.yaml").write_text(
        "defaults: {run: 'work:quick'}\n"
        "tasks:\n"
        "  - {name: draft, prompt: x}\n"
        "  - {name: report, depends_on: [draft], prompt_template: '{{ upstream.drfat.output }}'}\n"
    )
    code, out, err = run(["run", "t.yaml", "--dry-run"], folder)
    assert (code, out) == (2, "")
    problem = 'task "report": its prompt needs upstream.drfat, and it depends on draft; did you mean upstream.draft?'
    assert f"t.yaml:4:5: tasks[1]: {problem}" in err


def test_unfinished_tasks_are_shown_with_their_calls_so_far(folder):
    (folder / "work.py").write_text(
        "import os\nfrom autogen import ConversableAgent\n"
        "def asks(ctx):\n"
        "    agent = ConversableAgent('a', llm_config=ctx.llm_config({'config_list': [{'model': 'm', 'api_key': 'x', 'base_url': os.environ['URL']}]}))\n"
        "    for text in ('one', 'two'):\n"
        "        agent.generate_reply([{'role': 'user', 'content': text}])\n"
        "    os._exit(9)\n"
    )
    (folder / "t.yaml").write_text('tasks: [{name: a, prompt: x, run: "work:asks"}]\n')
    with ModelServer() as server, start(["run", "t.yaml", "--journal", "j.db"], folder, URL=server.base_url) as process:
        process.communicate(timeout=50)
    _, out, _ = run(["show", "j.db", "--format", "json"], folder)
    (row,) = json.loads(out)
    assert (row["status"], row["calls"]) == (None, 2)
    assert " calls " in run(["show", "j.db"], folder)[1]


def test_an_effect_that_is_uncertain_says_what_to_type(tmp_path):
    (tmp_path / "work.py").write_text(
        "import os\nfrom ag2_parallel import once\n\n@once\ndef send(to):\n    os._exit(9)\n\ndef work(ctx):\n    return send('anna')\n"
    )
    (tmp_path / "t.yaml").write_text('tasks: [{name: a, prompt: x, run: "work:work"}]\n')
    with start(["run", "t.yaml", "--journal", "j.db"], tmp_path) as process:
        process.communicate(timeout=50)
    code, out, _ = run(["resume", "j.db", "--format", "jsonl"], tmp_path)
    assert code == 1
    assert "--uncertain skip" in json.loads(out)["error"]["message"]
    assert run(["resume", "j.db", "--uncertain", "skip"], tmp_path)[0] == 0


AG2 = """
agents:
  helper: {framework: ag2, prompt: You help., description: Helps., config: {model: m, base_url: "${URL}", api_key: x}}
  boss: {framework: ag2, prompt: You lead., agents: [helper], tools: ["work:count_words"], config: {model: m, base_url: "${URL}", api_key: x}}
tasks: [{name: a, prompt: Go., agent: boss}, {name: b, prompt: Go., agent: helper}]
"""


def test_agents_of_ag2_1_stand_in_task_files(folder):
    (folder / "t.yaml").write_text(AG2)

    def model(request):
        tools = ", ".join(tool["function"]["name"] for tool in request.tools)
        return f"{request.system_text} {tools}"

    with ModelServer(model) as server:
        code, out, err = run(["run", "t.yaml", "--format", "jsonl"], folder, URL=server.base_url)
    assert code == 0, err
    outputs = {row["name"]: row["output"] for row in map(json.loads, out.splitlines())}
    assert outputs["b"].strip() == "You help."
    assert outputs["a"].startswith("You lead.")
    assert "count_words" in outputs["a"]
    assert "helper" in outputs["a"]


def test_shared_problems_of_few_tasks_are_all_named():
    from ag2_parallel import ConfigurationError

    tasks = [ParallelTask(name, 5, {}) for name in ("a", "b", "c")]
    with pytest.raises(ConfigurationError, match="3 problems") as caught:
        ParallelAgentRunner(progress=False).run(tasks)
    assert len(caught.value.problems) == 3
    with pytest.raises(ConfigurationError, match='task "a" and 3 more tasks: prompt') as caught:
        ParallelAgentRunner(progress=False).run([*tasks, ParallelTask("d", 5, {})])
    assert len(caught.value.problems) == 4


def test_the_cause_that_failures_have_in_common_is_told_once(tmp_path):
    config = {"model": "m", "api_key": "none", "base_url": "http://127.0.0.1:9/v1"}
    alike = [{"name": f"t{n}", "prompt": "x", "agent_config": {"llm_config": config}} for n in range(4)]
    (tmp_path / "work.py").write_text(CODE)
    other = {"name": "other", "run": "work:broken", "prompt": "x"}
    (tmp_path / "t.json").write_text(json.dumps({"options": {"model_retry": 1}, "tasks": [*alike, other]}))
    code, _, err = run(["run", "t.json"], tmp_path)
    assert code == 1
    assert "ag2-parallel: 4 of 5 failures are alike (connection), such as: " in err
    assert "Connect call failed" in err.partition("are alike")[2]

"""P16, F06, F27, F40: task files, their text and their errors."""

import hashlib
import json

import pytest

from ag2_parallel import ConfigurationError, DuplicateTaskError, Template
from ag2_parallel.cli.task_files.document import Plain, resolved
from ag2_parallel.cli.task_files.plan import RowsWanted, read_plan
from ag2_parallel.data.row import Row

KEY = "sk-live-0123456789abcdef"


@pytest.fixture
def plan(tmp_path):
    def plan(*contents, environment=None, rows=None, **named):
        files = {
            **{f"f{at}.yaml": text for at, text in enumerate(contents)},
            **{n.replace("_", "."): t for n, t in named.items()},
        }
        for name, text in files.items():
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_plan([tmp_path / name for name in files], environment or {}, rows)

    return plan


@pytest.fixture
def problems(plan, tmp_path):
    def problems(*contents, **named):
        with pytest.raises(ConfigurationError) as caught:
            plan(*contents, **named)
        return [problem.replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return problems


def test_text_stays_text(plan):
    tasks = plan(
        """
tasks:
  - {name: 0123, prompt: no}
  - {name: no, prompt: 12:30}
  - {name: 12:30, prompt: 1e3}
  - {name: 0x10, prompt: yes, group: off}
  - {name: 2026-01-02, prompt: "null"}
"""
    ).tasks
    assert [(task.name, task.prompt) for task in tasks] == [
        ("0123", "no"), ("no", "12:30"), ("12:30", "1e3"), ("0x10", "yes"), ("2026-01-02", "null"),
    ]  # fmt: skip
    assert tasks[3].group == "off"
    assert all(type(text) is str for task in tasks for text in (task.name, task.prompt))


def test_numbers_are_numbers_where_numbers_are_wanted(plan):
    made = plan(
        """
llm_config: {config_list: [{model: gpt-4o, price: [0, 0.5]}], temperature: 0.2, cache_seed: null, stream: false}
tasks: [{name: a, prompt: x, timeout: 1.5, retry: 3, metadata: {id: 0123, n: 7, "no": no, s: "5"}}]
options: {max_workers: 4, model_retry: {max_attempts: 2, jitter: false}, budget: {max_tokens: 100}, rate_limits: [{requests: 5, per: 1}]}
"""
    )
    assert made.options["llm_config"] == {
        "config_list": [{"model": "gpt-4o", "price": [0, 0.5]}], "temperature": 0.2, "cache_seed": None, "stream": False,
    }  # fmt: skip
    (task,) = made.tasks
    assert (task.timeout, task.retry.max_attempts) == (1.5, 3)
    assert task.metadata == {"id": "0123", "n": 7, "no": "no", "s": "5"}
    assert made.options["max_workers"] == 4
    assert made.options["model_retry"].jitter is False
    assert made.options["rate_limits"][0].per == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-1.5", -1.5), ("1e3", 1000.0), ("true", True), ("0123", "0123"), ("12:30", "12:30"), ("NaN", "NaN"), ("-", "-"), ("1_000", "1_000")],
)  # fmt: skip
def test_unquoted_values_are_what_json_makes_of_them(text, value):
    assert resolved([Plain(text), text]) == [value, text]


def test_every_problem_has_its_place(problems):
    told = problems(
        """tasks:
  - name: a
    promt: x
  - name: b
    prompt: x
    timeout: soon
  - prompt: x
agents:
  c: {tool: ["x:y"]}
  d:
    tools: [no_path]
teams:
  t: {pattern: robin, agents: [c, d]}
options:
  max_worker: 3
  rate_limits: [{reqests: 1}]
"""
    )
    assert told == [
        "f0.yaml:9:7: agents.c.tool: unknown key; did you mean 'tools'?",
        'f0.yaml:11:13: agents.d.tools[0]: write "module:attribute", as in "my_tools:search"',
        "f0.yaml:13:7: teams.t.pattern: input should be 'two_agent', 'round_robin', 'auto' or 'sequence'",
        "f0.yaml:3:5: tasks[0].promt: unknown key; did you mean 'prompt'?",
        "f0.yaml:6:5: tasks[1].timeout: input should be a valid number, unable to parse string as a number",
        "f0.yaml:7:5: tasks[2].name: is missing",
        "f0.yaml:16:18: options.rate_limits[0].reqests: unknown key; did you mean 'requests'?",
        "f0.yaml:15:3: options.max_worker: unknown key; did you mean 'max_workers'?",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tasks: [\n", "f0.yaml:2:1: no valid YAML"),
        ("tasks:\n  - name: a\n    prompt: Patient: pain\n", 'f0.yaml:3:20: no valid YAML: mapping values are not allowed in this context; put text that has ": " in it in quotes'),
        ("tasks:\n\t- name: a\n", "while scanning for the next token; indent with blanks, not with tabs"),
        ("tasks:\n  - name: @a\n", "while scanning for the next token; put this text in quotes"),
        ("tasks:\n  - name: a\n   prompt: x\n", "f0.yaml:3:4: no valid YAML: did not find expected '-' indicator; while parsing a block collection; check how far this line is indented"),
        ("tasks:\n  - name: a\n    prompt: {{ text }}\n", "f0.yaml:3:14: a key must be text; text that begins with a brace, such as {{ text }}, stands in quotes"),
        ("tasks: []\ntasks: []\n", "f0.yaml:2:1: the key 'tasks' is there twice, first in line 1"),
        ("tasks: !!python/object/apply:os.system [ls]\n", "f0.yaml:1:8: the tag tag:yaml.org,2002:python/object/apply:os.system is not known"),
        ("tasks: !mine []\n", "f0.yaml:1:8: the tag !mine is not known"),
        ("tasks: &a [*a]\n", "f0.yaml:1:8: an alias stands inside"),
        ("just text\n", "f0.yaml:1:1: must be a mapping, and is text"),
        ("", "f0.yaml: must be a mapping, and is empty"),
        ("defaults: {timeout: 3}\n", "f0.yaml: there is no task"),
        ("tasks: [{name: a}]\n", "f0.yaml:1:9: tasks[0]: it has neither prompt nor prompt_template"),
        ("tasks: [{name: a, prompt: x, agent: b}]\nagents: {a: {}, bb: {}}\n", "f0.yaml:1:30: tasks[0].agent: no agent is called 'b'; did you mean 'bb'?"),
        ("tasks: [{name: a, prompt: x, agent: 'no_such:thing'}]\n", 'f0.yaml:1:30: tasks[0].agent: "no_such:thing": module "no_such" cannot be imported'),
        ("tasks: [{name: a, prompt: x, run: 'textwrap:dedant'}]\n", 'did you mean "textwrap:dedent"?'),
        ("tasks: [{name: a, prompt_template: '{{ x }}'}]\n", "f0.yaml:1:19: tasks[0].prompt_template: the template needs x"),
        ("tasks: [{name: a, prompt_template: '{% if %}'}]\n", "tasks[0].prompt_template: the template does not parse: line 1"),
        ("teams: {t: {pattern: two_agent, agents: [a, a]}}\nagents: {a: {}}\n", "f0.yaml:1:45: teams.t.agents[1]: the agent 'a' is there twice"),
        ("teams: {t: {pattern: auto, agents: [a, x]}}\nagents: {a: {}}\n", "f0.yaml:1:40: teams.t.agents[1]: no agent is called 'x'"),
        ("teams: {a: {pattern: auto, agents: [a, b]}}\nagents: {a: {}, b: {}}\n", "f0.yaml:1:9: teams.a: the name is taken, at"),
        ("agents: {a: {framework: ag2, system_message: x}}\n", "f0.yaml:1:30: agents.a.system_message: unknown key; did you mean 'prompt'?"),
        ("agents: {a: {framework: ag3}}\n", "f0.yaml:1:10: agents.a: framework is classic, for agents of AG2 Classic, or ag2, for those of AG2 1.x"),
        ("agents: {a: {framework: ag2, agents: [a]}}\n", "f0.yaml:1:39: agents.a.agents[0]: the agent 'a' is its own tool"),
        ("agents: {a: {framework: ag2, agents: [b]}, b: {}}\n", "f0.yaml:1:39: agents.a.agents[0]: no agent is called 'b'"),
        ("teams: {t: {pattern: auto, agents: [a, b]}}\nagents: {a: {}, b: {framework: ag2}}\n", "f0.yaml:1:40: teams.t.agents[1]: the agent 'b' is of AG2 1.x"),
        ("tasks_from: no.csv\ndefaults: {prompt: x}\n", "tasks_from[0]: there is no data file"),
        ("options: {budget: {max_tokens: 0}}\ntasks: []\n", "f0.yaml:1:11: options.budget: Budget max_tokens: 0 is not"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(problems, text, told):
    assert told in problems(text)[0]


def test_a_doubled_name_is_refused_with_both_places(problems, plan):
    """F06: names are compared after NFC, case folding and stripping."""
    yaml = 'tasks:\n  - {name: a, prompt: x}\n  - {name: "A ", prompt: y}\n  - {name: a, prompt: z}\n'
    told = problems(yaml)
    assert len(told) == 2
    assert told[0].startswith('f0.yaml:3:5: tasks[1]: the task name "A " is used at ')
    assert "f0.yaml:2:5: tasks[0] already" in told[0]
    jsonl = '{"name": "é", "prompt": "x"}\n\n{"name": "e\\u0301", "prompt": "y"}\n'
    (told,) = problems(d_jsonl=jsonl)
    assert told.startswith("d.jsonl:3:1: the task name")
    assert "d.jsonl:1:1 already" in told
    (told,) = problems(d_csv="name,prompt\na,x\nb,y\na,z\n")
    assert told.startswith('d.csv:4: the task name "a"')
    assert "d.csv:2 already" in told
    with pytest.raises(DuplicateTaskError):
        plan("tasks: [{name: a, prompt: x}]", d_csv="name,prompt\na,x\n")


JSON = '{"tasks": [\n  {"name": 7, "prompt": "x", "depends_on": [],\n   "metadata": {"s": "}],{", "e": "\\"\\ud83c\\udf78"}, "timeout": "x"},\n  {"nme": "b"}]}'


def test_json_has_places_too(problems, plan):
    told = problems(d_json=JSON)
    assert told == [
        "d.json:3:54: tasks[0].timeout: input should be a valid number, unable to parse string as a number",
        "d.json:4:3: tasks[1].name: is missing",
        "d.json:4:4: tasks[1].nme: unknown key; did you mean 'name'?",
    ]
    assert problems(d_json='{"tasks": [\n{"a": 1,\n "a": 2}]}') == ["d.json:3:2: the key 'a' is there twice"]
    assert problems(d_json="[{,}]")[0].startswith("d.json:1:3: no valid JSON")
    (task,) = plan(d_json='\ufeff[{"name": 7, "prompt": [{"role": "user", "content": "x"}], "timeout": 3}]').tasks
    assert (task.name, task.prompt, task.timeout) == ("7", [{"role": "user", "content": "x"}], 3.0)


def test_json_lines_name_their_lines(problems):
    lines = ['{"name": "a", "prompt": "x"}', "{", "", "[]", '{"name": "b", "prompt": "x", "timeout": 0}']
    told = problems(d_jsonl="\n".join(lines))
    assert [each.partition(": ")[0] for each in told] == ["d.jsonl:2:2", "d.jsonl:4:1", "d.jsonl:5:30"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_spreadsheet_of_tasks(plan, mark, separator):
    """F40: byte order mark, line ends and separators of spreadsheets."""
    rows = [["name", "prompt", "depends_on", "timeout", "metadata", "context"], ["0123", "no", "", "2.5", "ward", ""],
            ["b", "x\r\ny", "0123", "", "", '"{""a"": [1]}"']]  # fmt: skip
    text = mark + "\r\n".join(separator.join(f'"{c}"' if "\n" in c else c for c in row) for row in rows) + "\r\n"
    first, second = plan(t_csv=text).tasks
    assert (first.name, first.prompt, first.timeout, first.metadata) == ("0123", "no", 2.5, "ward")
    assert (second.prompt, second.depends_on, second.context) == ("x\r\ny", ["0123"], {"a": [1]})


def test_unknown_columns_are_refused_with_those_that_were_found(problems):
    (told,) = problems(t_csv="nam;prompt;ward\na;x;3\n")
    assert told.startswith(
        "t.csv:1: unknown columns 'nam' (did you mean 'name'?), 'ward'; the columns found are 'nam', 'prompt', 'ward'"
    )


def test_very_large_prompts_are_kept_whole(plan):
    """F27: a 300,000 character cell, a line of 20 MB, a block of 5 MB in YAML."""
    cell = 'a "quoted", text;\n' * 17_000
    line = "ü" * 10_000_000
    block = "a line of text\n" * 350_000
    quoted = cell.replace('"', '""')
    yaml = "tasks:\n- name: c\n  prompt: |\n" + "".join(f"    {text}\n" for text in block.splitlines())
    made = plan(
        yaml,
        t_csv=f'name,prompt\na,"{quoted}"\n',
        t_jsonl=json.dumps({"name": "b", "prompt": line}, ensure_ascii=False),
    )
    found = {task.name: hashlib.sha256(task.prompt.encode()).hexdigest() for task in made.tasks}
    assert found == {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in (("a", cell), ("b", line), ("c", block))
    }
    assert len(repr(made.tasks[0])) < 1000


def test_variables_are_filled_in_and_keys_are_never_told(plan, problems, tmp_path):
    text = """
llm_config: {config_list: [{model: "${MODEL:-gpt-4o}", api_key: "${SECRET_THING}", base_url: "${URL}/v1"}]}
tasks: [{name: a, prompt: "echo ${HOME}", metadata: "$${HOME} ${HOME}"}]
"""
    environment = {"SECRET_THING": KEY, "URL": "http://host", "HOME": "/me", "MODEL": ""}
    made = plan(text, environment=environment)
    assert made.options["llm_config"]["config_list"] == [
        {"model": "gpt-4o", "api_key": KEY, "base_url": "http://host/v1"}
    ]
    assert (made.tasks[0].prompt, made.tasks[0].metadata) == ("echo ${HOME}", "${HOME} /me")
    assert KEY not in repr(made)
    assert made.redactor.text(f"key {KEY}") == "key ***"
    told = problems(text, environment={"URL": ""})
    assert told == [
        "f0.yaml:2:56: llm_config.config_list[0].api_key: the environment variable SECRET_THING is not set; set it, or write ${SECRET_THING:-default}",
        "f0.yaml:3:43: tasks[0].metadata: the environment variable HOME is not set; set it, or write ${HOME:-default}",
    ]  # fmt: skip
    leaking = "tasks: [{name: a, prompt: x, timeout: '${API_KEY}', agent: '${API_KEY}'}]"
    assert "swordfish" not in str(problems(leaking, environment={"API_KEY": "swordfish"}))
    leaking = "tasks: [{name: a, prompt: x, agent: '${API_KEY}'}]"
    (told,) = problems(leaking, environment={"API_KEY": "swordfish"})
    assert "no agent is called '***'" in told


def test_files_are_taken_together(plan, problems):
    config = (
        "llm_config: {config_list: [{model: m}]}\nagents: {a: {system_message: hi}}\ndefaults: {timeout: 9, agent: a}\n"
    )
    made = plan(config, t_csv="name,prompt\nx,y\n")
    (task,) = made.tasks
    assert (task.timeout, task.agent_config["system_message"]) == (9.0, "hi")
    assert "has llm_config too" in problems(config, "llm_config: {config_list: []}")[0]


def test_a_task_s_own_fields_replace_the_defaults(plan):
    made = plan(
        """
defaults: {prompt_template: "{{ context.x }}", run: "textwrap:dedent", timeout: 5, context: {x: 1}}
tasks:
  - {name: a}
  - {name: b, prompt: literal, agent_config: {system_message: hi}, timeout: null}
"""
    )
    a, b = made.tasks
    assert (a.prompt, a.run, a.timeout) == (Template("{{ context.x }}"), "textwrap:dedent", 5.0)
    assert (b.prompt, b.run, b.timeout, b.agent_config) == ("literal", None, None, {"system_message": "hi"})


def test_tasks_from_a_data_set(plan, tmp_path):
    (tmp_path / "cases.csv").write_text("id,text\n1,one\n2,two\n")
    made = plan(
        """
agents: {a: {}, b: {}}
teams: {t: {pattern: round_robin, agents: [a, b], max_rounds: 3}}
tasks: [{name: first, prompt: x, agent: a}]
tasks_from:
  data: cases.csv
  name: case {{ id }}
  prompt_template: Say {{ text }}
  agent: t
  priority: 3
"""
    )
    first, *cases = made.all_tasks()
    assert first.name == "first"
    assert [(task.name, task.prompt, task.max_turns, task.priority) for task in cases] == [
        ("case 1", "Say one", 3, 3), ("case 2", "Say two", 3, 3),
    ]  # fmt: skip
    assert [task.name for task in plan("tasks_from: cases.csv\ndefaults: {prompt: hi}\n").all_tasks()] == [
        "row-000001",
        "row-000002",
    ]


def test_a_missing_column_is_found_at_once(problems, tmp_path):
    (tmp_path / "cases.csv").write_text("id,text\n1,one\n")
    told = problems('tasks_from: {data: cases.csv, prompt_template: "{{ txt }}", name: "{{ nr }}"}')
    assert len(told) == 2
    assert told[0].startswith("f0.yaml:1:1: tasks_from[0]: prompt: the template needs 'txt'")
    assert "did you mean 'text'?" in told[0]


def test_a_literal_prompt_with_places_for_columns_is_found_at_once(problems, tmp_path):
    (tmp_path / "cases.csv").write_text("id,text\n1,one\n")
    told = problems('tasks_from: {data: cases.csv, prompt: "Say {{ text | upper }}"}')
    said = "prompt: {{ text | upper }} is plain text in it, and the same for every row of cases.csv"
    assert told == [f"f0.yaml:1:1: tasks_from[0]: {said}; write a prompt_template in place of it"]


def test_a_data_set_of_the_command_line_is_for_the_only_agent(plan, tmp_path):
    (tmp_path / "cases.csv").write_text("id\n1\n")
    data = str(tmp_path / "cases.csv")
    agents = "agents: {a: {}, b: {}}\n"
    team = "teams: {t: {pattern: sequence, agents: [a, b]}}\n"
    (task,) = plan(agents + team, rows=RowsWanted(data, "x {{ id }}", "{{ id }}")).all_tasks()
    assert (task.name, task.prompt, task.agent.pattern) == ("1", "x 1", "sequence")
    (task,) = plan(agents, rows=RowsWanted(data, "x", agent="b")).all_tasks()
    assert task.agent_config["name"] == "b"
    (task,) = plan("llm_config: {config_list: [{model: m}]}", rows=RowsWanted(data, "x")).all_tasks()
    assert task.agent is task.agent_config is None
    with pytest.raises(ConfigurationError, match="choose one of the agents with --agent: a, b"):
        plan(agents, rows=RowsWanted(data, "x"))
    with pytest.raises(ConfigurationError, match="there is no prompt"):
        plan("llm_config: {config_list: [{model: m}]}", rows=RowsWanted(data))


def test_a_row_says_where_it_is():
    assert (Row(3).where, Row(3, line=7).where) == ("row 3", "row 3 (line 7)")

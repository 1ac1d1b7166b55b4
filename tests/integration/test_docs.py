"""Every Python block of the README and the docs runs, its shown output is right, and the reference pages list what there is.

The blocks of a page run in order in one namespace, outside the test's process, against a model server: `llm_config` and
the environment's OPENAI_BASE_URL and OPENAI_API_KEY lead to it. A `text` block right below a Python block is what that
block prints. Run pages by hand with `python tests/integration/test_docs.py docs/errors.md`.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NamedTuple

import pytest

import ag2_parallel
from ag2_parallel import error_kinds, errors, events, options, results, spans, tasks, usage
from ag2_parallel.cli.task_files import models
from ag2_parallel.cli.task_files.checking import checked
from ag2_parallel.cli.task_files.models import TaskFile
from ag2_parallel.cli.task_files.yaml_document import yaml_document
from ag2_parallel.core.metrics import RunMetrics
from ag2_parallel.core.transitions import ATTEMPT_TRANSITIONS, TASK_TRANSITIONS
from ag2_parallel.testing import ModelServer, Reply, ToolCall

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
IN_A_NOTEBOOK = "notebooks.md"
"""The page whose blocks run as cells do, inside a running event loop."""

MOST_NOT_RUN = 2

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """One fenced block of a page, and the output shown below it."""

    info: str
    code: str
    line: int
    shown: str | None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    found = []
    for fence, following in itertools.zip_longest(fences, fences[1:]):
        below = following is not None and not text[fence.end() : following.start()].strip()
        shown = following["body"] if below and following["info"].strip() == "text" else None
        found.append(Block(fence["info"].strip(), fence["body"], text.count("\n", 0, fence.start("body")) + 1, shown))
    return found


def python_blocks(page: Path) -> list[Block]:
    return [block for block in blocks_of(page) if block.info == "python"]


# ---- the model that answers


def made_up(schema, root):
    """A value that fits a JSON schema."""
    if "$ref" in schema:
        return made_up(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return made_up(schema["anyOf"][0], root)
    if schema.get("type") == "object":
        return {name: made_up(each, root) for name, each in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [made_up(schema["items"], root)]
    return {"integer": 21, "number": 0.5, "boolean": True}.get(schema.get("type"), "hypertension")


def answer(request):
    """What a reader would expect of a model: tool calls, speaker selection, JSON where asked for, else a sentence."""
    last = request.messages[-1]
    said = str(request.messages)
    if choice := re.search(r"select the next role from \[(.*?)\]", said):
        return choice[1].split(",")[0].strip(" '\"\\")
    if last["role"] == "tool":
        return f"The tool says: {last['content']}"
    if request.tools:
        function = request.tools[0]["function"]
        parameters = function["parameters"]
        return Reply(tool_calls=[ToolCall(function["name"], made_up(parameters, parameters))])
    form = request.body.get("response_format")
    if form and form.get("type") == "json_schema":
        schema = form["json_schema"]["schema"]
        return json.dumps(made_up(schema, schema))
    return f"Answer to: {request.last_text.splitlines()[0] if request.last_text else 'nothing'}"


# ---- running a page, in a process of its own


def run_pages(pages: list[Path]) -> None:
    """Run each page in a folder and with names of its own; ends with what went wrong, page by page."""
    wrong = []
    with ModelServer(answer) as server:
        os.environ |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-docs-0000000000000000"}
        os.environ["MODEL_URL"] = server.base_url
        for page in pages:
            sys.stderr.write(f"--- {page.name}\n")
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                wrong += problems_of(page, {"__name__": "__main__", "llm_config": server.llm_config()})
    if wrong:
        sys.exit("\n\n".join(wrong))


def run_without_a_key(page: Path) -> None:
    """Run a page as a reader does who has no key: all blocks but the first, with nothing given."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.exit("\n\n".join(problems_of(page, {"__name__": "__main__"}, skip=1)) or None)


def problems_of(page: Path, names: dict, *, skip: int = 0) -> list[str]:
    for block in python_blocks(page)[skip:]:
        where = f"{page.name}:{block.line}"
        try:
            printed = run_block(page, block, names)
        except BaseException:
            return [f"{where} raises\n{traceback.format_exc()}"]
        if block.shown is not None and printed != block.shown:
            return [f"{where} prints\n{printed}\nand not\n{block.shown}"]
    return []


def run_block(page: Path, block: Block, names: dict) -> str:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", flags=flags, dont_inherit=True)
    printed = io.StringIO()

    async def cell():
        value = eval(code, names)
        if inspect.iscoroutine(value):
            await value

    with contextlib.redirect_stdout(printed):
        if page.name == IN_A_NOTEBOOK:
            asyncio.run(cell())
        else:
            assert not code.co_flags & inspect.CO_COROUTINE, f"{page.name}:{block.line} awaits outside a function"
            exec(code, names)
    return printed.getvalue()


@pytest.mark.timeout(240)
def test_the_blocks_of_every_page_run_and_print_what_is_shown(tmp_path):
    """S1, S16."""
    pages = [str(page) for page in PAGES if python_blocks(page)]
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", __file__, *pages],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    assert "Traceback" not in done.stderr, done.stderr[-8000:]
    assert len(pages) > 10


@pytest.mark.timeout(120)
def test_a_reader_without_a_key_gets_what_the_readme_shows(tmp_path):
    """The README says itself what answers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "MODEL_"))}
    command = [sys.executable, __file__, "--without-a-key", str(ROOT / "README.md")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr[-8000:]


def test_hardly_a_block_is_left_out():
    infos = [block.info for page in PAGES for block in blocks_of(page)]
    assert set(infos) <= {"python", "python no-run", "console", "text", "yaml"}
    assert infos.count("python no-run") <= MOST_NOT_RUN


def test_every_task_file_is_one():
    blocks = [(page, block) for page in PAGES for block in blocks_of(page) if block.info == "yaml"]
    for page, block in blocks:
        document = yaml_document(Path(f"{page.name}:{block.line}"), block.code)
        assert checked(TaskFile, document).model_fields_set
    assert blocks


# ---- the reference pages list what there is


def page_text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next one of any level."""
    _, found, rest = page_text(page).partition(f"## {heading}\n")
    assert found, f"docs/{page} has no section {heading!r}"
    return re.split(r"^##+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_column(page: str, heading: str) -> list[str]:
    """The names in backquotes in the first column of a section's table."""
    rows = [line for line in section(page, heading).splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def event_classes():
    classes = [value for _, value in inspect.getmembers(events, inspect.isclass)]
    return sorted(each.__name__ for each in classes if issubclass(each, events.Event) and each is not events.Event)


def names_of(cls):
    return sorted(cls.__dataclass_fields__)


@pytest.mark.parametrize(
    ("page", "heading", "there_are"),
    [
        ("options.md", "All options", lambda: names_of(options.Options)),
        ("options.md", "RetryPolicy", lambda: names_of(ag2_parallel.RetryPolicy)),
        ("tasks-and-results.md", "Task fields", lambda: sorted(tasks.TASK_FIELDS)),
        ("tasks-and-results.md", "Result fields", lambda: names_of(ag2_parallel.ParallelTaskResult)),
        ("tasks-and-results.md", "Status", lambda: sorted(map(str, ag2_parallel.TaskStatus))),
        ("tasks-and-results.md", "TaskError", lambda: names_of(ag2_parallel.TaskError)),
        ("tasks-and-results.md", "AttemptRecord", lambda: names_of(results.AttemptRecord)),
        ("tasks-and-results.md", "Span", lambda: sorted(spans.Span._fields)),
        ("tasks-and-results.md", "Usage", lambda: sorted([*names_of(usage.Usage), "total_tokens"])),
        (
            "tasks-and-results.md",
            "Metrics",
            lambda: sorted(RunMetrics().to_dict(wall=1.0, workers=1, peak=0, abandoned=0, lag_max=0.0)),
        ),
        ("tasks-and-results.md", "Events", event_classes),
        ("forecast.md", "Forecast fields", lambda: sorted([*names_of(ag2_parallel.Forecast), "left"])),
        ("task-files.md", "What a file may say", lambda: sorted(TaskFile.model_fields)),
        ("task-files.md", "Agents", lambda: sorted(models.Agent.model_fields)),
        ("task-files.md", "Agents of AG2 1.x", lambda: sorted(models.Ag2Agent.model_fields)),
        ("task-files.md", "Tasks", lambda: sorted(models.Task.model_fields)),
        ("errors.md", "Kinds of a TaskError", lambda: sorted(error_kinds.ERROR_KINDS)),
        (
            "errors.md",
            "Exceptions",
            lambda: sorted(n for n, v in vars(errors).items() if isinstance(v, type) and v.__module__ == errors.__name__),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_reference_table_lists_everything(page, heading, there_are):
    assert sorted(first_column(page, heading)) == there_are()


def test_permanent_kinds_are_marked():
    rows = [line.split("|") for line in section("errors.md", "Kinds of a TaskError").splitlines() if line[:3] == "| `"]
    again = {row[1].strip(" `"): row[3].strip() for row in rows}
    assert {kind for kind, tried in again.items() if tried == "no"} == error_kinds.PERMANENT_KINDS


@pytest.mark.parametrize(
    ("heading", "table"), [("States of a task", TASK_TRANSITIONS), ("States of an attempt", ATTEMPT_TRANSITIONS)]
)
def test_the_state_tables_are_those_of_the_schedule(heading, table):
    lines = ["| state | event | next state | meaning of the event |", "|---|---|---|---|"]
    for state, moves in table.items():
        for event, following in moves.items():
            lines.append(f"| {state} | {event} | {following} | {meaning(event)} |")
        if not moves:
            lines.append(f"| {state} | | | the end |")
    shown = [line for line in section("how-it-works.md", heading).splitlines() if line.startswith("|")]
    assert shown == lines


def meaning(event) -> str:
    """The text below a member of an enum in its source."""
    body = ast.parse(inspect.getsource(type(event))).body[0].body
    for member, text in itertools.pairwise(body):
        if isinstance(member, ast.Assign) and member.targets[0].id == event.name:
            return text.value.value.rstrip(".")
    raise AssertionError(event)


def test_all_public_names_are_in_the_docs():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in ag2_parallel.__all__ if not re.search(rf"\b{name}\b", text)] == []


# ---- links


def anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    broken = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


if __name__ == "__main__" and sys.argv[1] == "--without-a-key":
    run_without_a_key(Path(sys.argv[2]).resolve())
elif __name__ == "__main__":
    run_pages([Path(name).resolve() for name in sys.argv[1:]])

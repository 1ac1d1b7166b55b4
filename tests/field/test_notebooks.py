"""F09: the library in a Jupyter kernel, whose event loop runs already."""

import html
import re

import nbformat
import pytest
from run_notebooks import NOTEBOOKS, executed

SERVER = """
from ag2_parallel import *
from ag2_parallel.testing import ModelServer
server = ModelServer("scripted answer").start()
llm_config = server.llm_config()
"""


@pytest.fixture
def cells():
    """Runs cells of code in a kernel and gives the cells with their outputs."""

    def run(*sources):
        made = [nbformat.v4.new_code_cell(source) for source in (SERVER, *sources)]
        return executed(nbformat.v4.new_notebook(cells=made)).cells[1:]

    return run


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


def complaints(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stderr")


def shown(cell):
    """The text of what a cell displays as HTML."""
    pages = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
    return [html.unescape(re.sub(r"<[^>]+>", " ", page)) for page in pages]


def test_run_works_as_it_is_and_the_loop_is_left_alone(cells):
    before, run, awaited, after = cells(
        "import asyncio; loop = asyncio.get_running_loop(); print(type(loop).__module__)",
        "print(ParallelAgentRunner(progress=False).run([ParallelTask('t', 'hi', agent_config={'llm_config': llm_config})])['t'].output)",
        "results = await ParallelAgentRunner(progress=False, llm_config=llm_config).arun([ParallelTask('t', 'hi')])\nprint(results.ok)",
        "print(asyncio.get_running_loop() is loop, type(loop).__module__)",
    )
    assert printed(run) == "scripted answer\n"
    assert printed(awaited) == "True\n"
    assert printed(after) == f"True {printed(before)}"
    assert [complaints(cell) for cell in (before, run, awaited, after)] == [""] * 4


def test_progress_is_a_table_that_ends_full(cells):
    (cell,) = cells(
        "results = ParallelAgentRunner(llm_config=llm_config).run("
        "[ParallelTask('bad', run=lambda ctx: 1 / 0), *(ParallelTask(f't{n}', 'hi') for n in range(4))])"
    )
    (told,) = shown(cell)
    assert "5 of 5 tasks" in told
    assert "1 failed" in told
    assert "4 succeeded" in told
    assert complaints(cell) == ""


def test_results_runner_and_handle_show_well(cells):
    results, runner, handle = cells(
        "runner = ParallelAgentRunner(max_workers=3, llm_config=llm_config, progress=False, retry=2)\n"
        "results = runner.run([ParallelTask('<b>one', 'hi'), ParallelTask('bad', run=lambda ctx: 1 / 0)])\nresults",
        "runner",
        "handle = runner.start([ParallelTask('t', 'hi')]); handle.results(); handle",
    )
    (told,) = shown(results)
    for words in (
        "RunResults(1 succeeded, 1 failed)",
        "<b>one",
        "scripted answer",
        "ZeroDivisionError: division by zero",
    ):
        assert words in told
    (told,) = shown(runner)
    assert re.search(r"max_workers\s+3", told)
    assert re.search(r"llm_config\s+given", told)
    assert "timeout" not in told
    (told,) = shown(handle)
    assert re.search(r"finished\s+True", told)
    assert "1 succeeded" in told


def test_a_cell_that_is_run_again_shows_its_own_progress(cells):
    cell = "r = ParallelAgentRunner(llm_config=llm_config).run([ParallelTask('t', 'hi')])"
    for again in cells(cell, cell):
        assert ["1 of 1 tasks" in told for told in shown(again)] == [True]


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["data_set_of_cases", "diagnostic_teams"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_kept_outputs_are_those_it_makes(path):
    kept = nbformat.read(path, as_version=4)
    made = executed(nbformat.read(path, as_version=4))
    for old, new in zip(kept.cells, made.cells, strict=True):
        assert old.source == new.source
        if old.cell_type == "code":
            assert without_figures(old) == without_figures(new)
            assert complaints(new) == ""


def without_figures(cell):
    """What a cell shows but for the numbers, which differ from run to run."""
    return re.sub(r"[\d.,:]+", "#", re.sub(r"\s+", " ", printed(cell))), [
        re.sub(r"[\d.,:]+", "#", re.sub(r"\s+", " ", told)) for told in shown(cell)
    ]

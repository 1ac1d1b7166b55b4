"""F25: progress on a terminal while tasks print, log and fail."""

import os
import re

import pytest
from terminal import Terminal

MIXED = """
import logging, sys, threading
from ag2_parallel import ParallelAgentRunner, ParallelTask
logging.basicConfig(format="LOG %(message)s")          # a handler that holds the real stream

def work(ctx):
    for turn in range(4):
        ctx.report(f"turn {turn}")
        print(f"task {ctx.index} says {turn} " + "word " * 6)
        logging.warning("task %d warns %d", ctx.index, turn)
        threading.Event().wait(0.02)
    if ctx.index % 5 == 1:
        raise ValueError("no")
    if ctx.index % 5 == 2:
        threading.Event().wait(30)

tasks = [ParallelTask(f"task {n}", run=work, timeout=0.5) for n in range(50)]
results = ParallelAgentRunner(max_workers=8, progress=True).run(tasks)
assert (len(results.succeeded), len(results.failed), len(results.timed_out)) == (30, 10, 10)
assert type(sys.stdout).__name__ == "TextIOWrapper" and type(sys.stderr).__name__ == "TextIOWrapper"
"""

SAYS = re.compile(r"task \d+ says \d (word ){5}word")
WARNS = re.compile(r"LOG task \d+ warns \d")


def is_bar(line):
    return "━" in line or "/50" in line


def test_lines_are_whole_and_there_is_one_bar_at_the_bottom():
    terminal = Terminal(MIXED)
    assert terminal.run() == 0, terminal.text()
    lines = terminal.text()
    says, warns = [line for line in lines if "says" in line], [line for line in lines if "warns" in line]
    assert len(says) == len(warns) == 200
    assert [line for line in says if not SAYS.fullmatch(line)] == []
    assert [line for line in warns if not WARNS.fullmatch(line)] == []
    bars = [line for line in lines if is_bar(line)]
    assert len(bars) == 1
    assert re.search(r"━+ +50/50 +.*10 failed.*10 timed out", bars[0])
    assert lines[-1].startswith("ag2-parallel: done in 0:0")
    assert lines[-2] == bars[0]


def test_a_half_drawn_bar_is_never_on_the_screen():
    terminal = Terminal(MIXED)
    terminal.run()
    drawn = [[line for line in state if is_bar(line)] for state in terminal.seen]
    assert max(map(len, drawn)) == 1
    assert sum(map(len, drawn)) > 5
    for state in terminal.seen[:-1]:
        below = [
            line for line in state[next((n for n, line in enumerate(state) if is_bar(line)), len(state)) + 1 :] if line
        ]
        assert [line for line in below if "done in" not in line] == []


def test_standard_output_stays_free_of_the_bar(tmp_path):
    with (tmp_path / "out.txt").open("wb") as out:
        terminal = Terminal(MIXED.replace('type(sys.stdout).__name__ == "TextIOWrapper" and', ""), stdout=out)
        assert terminal.run() == 0
    printed = (tmp_path / "out.txt").read_text()
    assert len(SAYS.findall(printed)) == 200
    assert SAYS.sub("", printed).strip() == ""
    assert any(is_bar(line) for line in terminal.text())


STEPS = """
import threading
from ag2_parallel import ParallelAgentRunner, ParallelTask

def work(ctx):
    ctx.report("reads the case")
    threading.Event().wait(1.0)

ParallelAgentRunner(max_workers=WORKERS).run([ParallelTask(NAME + str(n), run=work) for n in range(COUNT)])
"""


def steps(*, name="case ", count=3, workers=3):
    return STEPS.replace("WORKERS", str(workers)).replace("NAME", repr(name)).replace("COUNT", str(count))


def test_running_tasks_stand_above_the_bar_with_their_step():
    terminal = Terminal(steps())
    assert terminal.run() == 0
    assert any(re.search(r"case 1 +0:0\d +reads the case", line) for state in terminal.seen for line in state)
    assert not any("reads the case" in line for line in terminal.text())


def test_of_many_running_tasks_a_few_are_shown():
    terminal = Terminal(steps(count=40, workers=40), lines=12)
    assert terminal.run() == 0
    most = max(sum("reads the case" in line for line in state) for state in terminal.seen)
    assert 3 <= most <= 8
    assert any("more" in line for state in terminal.seen for line in state)


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_a_narrow_terminal_has_no_broken_lines(columns):
    terminal = Terminal(steps(name="病例 with a long name "), columns=columns)
    assert terminal.run() == 0
    assert any("3/3" in line for line in terminal.text())
    assert len(terminal.text()) <= 4 + 60 // columns


def test_no_color_has_no_colours():
    terminal = Terminal(steps(), NO_COLOR="1")
    assert terminal.run() == 0
    assert not re.search(rb"\x1b\[[0-9;]*[1-9][0-9;]*m", re.sub(rb"\x1b\[[0-9;]*[12]m", b"", terminal.raw))
    assert any("3/3" in line for line in terminal.text())


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}], ids=["dumb"])
def test_a_dumb_terminal_gets_lines(environment):
    terminal = Terminal(steps(), **environment)
    assert terminal.run() == 0
    assert b"\x1b" not in terminal.raw
    assert terminal.text()[0] == "ag2-parallel: 3 tasks, 3 at once"


def test_a_question_to_a_person_is_not_drawn_over():
    terminal = Terminal(steps().replace("max_workers=3", "max_workers=3, human_input=lambda question: input()"))
    assert terminal.run() == 0
    assert b"\x1b" not in terminal.raw


def test_two_runs_at_once_on_one_terminal():
    code = (
        steps()
        + "\n"
        + """
runs = [threading.Thread(target=lambda: ParallelAgentRunner().run([ParallelTask(f"{n}", run=work) for n in range(2)])) for _ in range(2)]
for run in runs: run.start()
for run in runs: run.join()
"""
    )
    terminal = Terminal(code)
    assert terminal.run() == 0
    assert sum("━" in line for line in terminal.text()) == 2
    assert sum("done in" in line for line in terminal.text()) == 3


def test_text_that_is_not_a_line_yet_keeps_its_place():
    code = """
import sys, threading
from ag2_parallel import ParallelAgentRunner, ParallelTask

def work(ctx):
    for letter in "abc":
        print(letter, end="", flush=True)
        threading.Event().wait(0.4)

ParallelAgentRunner().run([ParallelTask("t", run=work)])
print("after")
"""
    terminal = Terminal(code)
    assert terminal.run() == 0
    assert [line for line in terminal.text() if line and "━" not in line and "done" not in line] == ["abc", "after"]


def test_a_name_that_is_a_control_sequence_moves_no_cursor():
    terminal = Terminal(steps().replace('ctx.report("reads the case")', "ctx.report('\\x1b[2J\\x1b[31mgone')"))
    assert terminal.run() == 0
    assert b"\x1b[2J" not in terminal.raw


def test_a_terminal_that_goes_away_harms_no_task():
    code = """
import os, sys, threading
from ag2_parallel import ParallelAgentRunner, ParallelTask
kept = os.dup(2)
def work(ctx):
    if ctx.index == 0:
        os.close(2)
    threading.Event().wait(0.5)
    return ctx.index
results = ParallelAgentRunner().run([ParallelTask(f"{n}", run=work) for n in range(4)])
os.dup2(kept, 2)
os._exit(0 if [r.output for r in results.values()] == [0, 1, 2, 3] else 1)
"""
    terminal = Terminal(code)
    assert terminal.run() == 0


def test_thousands_of_events_a_second_cost_little(tmp_path):
    """The processor time of a run whose tasks do nothing but report, with a display beside an observer that does nothing."""
    code = """
import os, time
from ag2_parallel import ParallelAgentRunner, ParallelTask

def work(ctx):
    for turn in range(10):
        ctx.report(f"turn {turn}")

def cost(progress):
    before = time.process_time()
    runner = ParallelAgentRunner(max_workers=16, progress=progress, observers=[lambda event: None])
    results = runner.run([ParallelTask(f"t{n}", run=work) for n in range(3000)])
    assert len(results.succeeded) == 3000
    return time.process_time() - before

cost(False)
without, shown = cost(False), cost(True)
with open(os.environ["FIGURES"], "w") as file:
    file.write(f"{without} {shown}")
"""
    figures = tmp_path / "figures"
    terminal = Terminal(code, FIGURES=os.fspath(figures))
    assert terminal.run() == 0
    without, shown = map(float, figures.read_text().split())
    assert shown < 1.6 * without

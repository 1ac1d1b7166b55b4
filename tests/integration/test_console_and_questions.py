"""F07, F25, F31, P12, P19: console of tasks, progress lines, questions to a person."""

import io
import re
import sys
import threading

import pytest

from ag2_parallel import HumanInputRequest, ParallelAgentRunner, ParallelTask
from ag2_parallel.events import RunFinished, RunStarted, TaskFinished
from ag2_parallel.reporting.log_lines import ProgressLines
from ag2_parallel.usage import Usage

pytestmark = pytest.mark.usefixtures("no_threads_left")


def chatty(ctx):
    for number in range(50):
        print(f"<{ctx.name}:", end="")
        print(f"{number}>")


def tasks():
    return [ParallelTask(f"t{i}", run=chatty) for i in range(8)]


def test_grouped_tasks_are_contiguous_under_a_header(capsys):
    results = ParallelAgentRunner(max_workers=8, console="grouped", progress=False).run(tasks())
    blocks = re.split(r"===== (t\d) =====\n", capsys.readouterr().out)[1:]
    shown = dict(zip(blocks[::2], blocks[1::2], strict=True))
    assert sorted(shown) == [f"t{i}" for i in range(8)]
    for name, block in shown.items():
        assert block == "".join(f"<{name}:{n}>\n" for n in range(50)) == results[name].console


def test_prefixed_lines_are_whole(capsys):
    ParallelAgentRunner(max_workers=8, console="prefix", progress=False).run(tasks())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 400
    assert all(re.fullmatch(r"(t\d) \| <\1:\d+>", line) for line in lines)


def test_quiet_leaves_the_users_prints_alone(capsys):
    before = sys.stdout
    ParallelAgentRunner(max_workers=1, progress=False).run([ParallelTask("t", run=lambda ctx: print("mine"))])
    assert sys.stdout is before
    assert capsys.readouterr().out == "mine\n"


def test_other_threads_pass_through_and_stdout_is_given_back(capsys):
    before = sys.stdout

    def task(ctx):
        other = threading.Thread(target=lambda: print("from another thread"))
        other.start()
        other.join()
        print("from the task")

    ParallelAgentRunner(console="grouped", progress=False).run([ParallelTask("t", run=task)])
    assert sys.stdout is before
    assert capsys.readouterr().out == "from another thread\n===== t =====\nfrom the task\n"


def test_someone_elses_stdout_is_not_taken_away():
    mine, before = io.StringIO(), sys.stdout

    def task(ctx):
        sys.stdout = mine

    try:
        ParallelAgentRunner(console="grouped", progress=False).run([ParallelTask("t", run=task)])
        assert sys.stdout is mine
    finally:
        sys.stdout = before


def test_control_sequences_do_not_reach_the_terminal(capsys):
    task = ParallelTask("t", run=lambda ctx: print("\x1b[2Jgone\r"))
    results = ParallelAgentRunner(console="grouped", progress=False).run([task])
    assert "\x1b" not in capsys.readouterr().out
    assert results["t"].console == "\x1b[2Jgone\r\n"


def test_progress_goes_to_stderr_as_whole_lines(capsys):
    ParallelAgentRunner(max_workers=2).run([ParallelTask(f"t{i}", run=lambda ctx: 1) for i in range(3)])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "ag2-parallel: 3 tasks, 2 at once"
    assert sum("succeeded in" in line for line in err.splitlines()) == 3
    assert "3 succeeded" in err.splitlines()[-1]


def test_a_large_run_gets_a_line_now_and_then():
    now, stream = [0.0], io.StringIO()
    lines = ProgressLines(stream, clock=lambda: now[0])
    lines(RunStarted(run_id="r", total=1000, max_workers=8))
    for number in range(1000):
        now[0] += 0.05
        lines(
            TaskFinished(
                run_id="r",
                task=str(number),
                index=number,
                status="succeeded",
                stop_reason=None,
                duration=0.1,
                error=None,
                usage=Usage(),
            )
        )
    lines(RunFinished(run_id="r", stop_reason=None, counts={}))
    assert 8 <= len(stream.getvalue().splitlines()) <= 14
    assert "1000 succeeded" in stream.getvalue().splitlines()[-1]


def test_questions_reach_the_hook_one_at_a_time():
    """F31, P12."""
    asking, most, requests = [], [0], []

    def hook(request):
        asking.append(request)
        most[0] = max(most[0], len(asking))
        threading.Event().wait(0.02)
        asking.remove(request)
        requests.append(request)
        return f"answer for {request.task}"

    class Asker:
        def run_task(self, ctx):
            scope = ctx._services
            return scope.ask(HumanInputRequest(ctx.name, "doctor", "Sure?"))

    results = ParallelAgentRunner(max_workers=4, human_input=hook, progress=False).run(
        [ParallelTask(f"t{i}", agent=Asker()) for i in range(6)]
    )
    assert [r.output for r in results.values()] == [f"answer for t{i}" for i in range(6)]
    assert most[0] == 1
    assert {request.agent for request in requests} == {"doctor"}


def test_the_question_of_a_stopped_task_does_not_hold_up_the_others():
    """F31: a hook that does not come back costs its own task its time, and nobody else."""
    asking, never = threading.Event(), threading.Event()

    def hook(request):
        if request.task == "stuck":
            asking.set()
            never.wait(30)
        return "yes"

    class Asker:
        def run_task(self, ctx):
            if ctx.name == "patient":
                asking.wait(5)
            return ctx._services.ask(HumanInputRequest(ctx.name, "doctor", "Sure?"))

    try:
        results = ParallelAgentRunner(max_workers=2, human_input=hook, progress=False, grace=0.2).run(
            [ParallelTask("stuck", agent=Asker(), timeout=0.5), ParallelTask("patient", agent=Asker(), timeout=10)]
        )
        assert results["stuck"].status == "timed_out"
        assert results["patient"].output == "yes"
    finally:
        never.set()

"""Worker processes that die, get stuck, grow, are replaced and end with the caller's. See `work_in_processes`."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask, ProcessBackend

HERE = Path(__file__).parent


def task(name, work, prompt="", **fields):
    return ParallelTask(name, prompt, run=f"work_in_processes:{work}", **fields)


def runner(max_workers=4, *, timeout=None, retry=1, human_input="refuse", directory=None, **backend):
    return ParallelAgentRunner(
        max_workers,
        timeout,
        backend=ProcessBackend(**{"workers": 2, **backend}),
        retry=retry,
        human_input=human_input,
        directory=directory,
        progress=False,
    )


def below(pid=None):
    return [each for each in psutil.Process(pid).children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]


def test_tasks_are_spread_over_processes():
    with runner() as made:
        results = made.run([task(f"t{i}", "nap", "0.3") for i in range(4)])
        pids = [result.output for result in results.values()]
        assert os.getpid() not in pids
        assert sorted(map(pids.count, set(pids))) == [2, 2]
        again = made.run([task(f"t{i}", "nap", "0.3") for i in range(4)])
        assert {result.output for result in again.values()} == set(pids)
    assert below() == []


class TestCrashes:
    def test_who_was_there_runs_again_alone_and_the_guilty_fails(self):
        results = runner().run([task("guilty", "dies"), *[task(f"t{i}", "nap", "0.5") for i in range(3)]])
        assert [str(result.status) for result in results.values()] == ["failed", *["succeeded"] * 3]
        guilty = results["guilty"]
        assert guilty.error.kind == "worker_crashed"
        assert "killed by signal 9 (SIGKILL)" in guilty.error.message
        assert (guilty.attempts, guilty.ended) == (2, "killed")
        again = [result for result in results.succeeded if result.attempts == 2]
        assert len(again) == 1  # two and two in two processes
        assert [record.ended for record in again[0].attempt_log] == ["killed", "returned"]
        assert "runs again, alone in a process" in again[0].attempt_log[0].error.message

    def test_one_that_kills_once_and_not_again(self, tmp_path):
        results = runner(directory=tmp_path).run([task("t", "dies_once")])
        assert (results["t"].output, results["t"].attempts) == (2, 2)

    def test_a_lost_attempt_counts_as_no_retry(self, tmp_path):
        results = runner(directory=tmp_path, retry=2).run([task("t", "dies")])
        assert [record.error.kind for record in results["t"].attempt_log] == ["worker_crashed"] * 3

    def test_nothing_runs_again_where_that_is_not_wanted(self):
        results = runner(rerun_lost=False, workers=1).run([task("guilty", "dies"), task("t", "nap", "5")])
        assert [result.error.kind for result in results.values()] == ["worker_crashed"] * 2
        assert [result.attempts for result in results.values()] == [1, 1]


class TestStuck:
    def test_a_stuck_attempt_is_killed_and_its_deadline_holds(self):
        with runner(workers=1) as made:
            made.run([task("first", "pid")])
            results = made.run([task("stuck", "swallows_every_stop", timeout=0.5), task("other", "nap", "2.5")])
        stuck, other = results["stuck"], results["other"]
        assert (str(stuck.status), stuck.ended) == ("timed_out", "killed")
        assert 0.4 < stuck.duration < 0.5 + 0.25 + 0.5
        assert (other.attempts, other.ok) == (1, True)  # its process is killed after it

    def test_an_attempt_that_holds_the_interpreter(self):
        with runner(workers=1) as made:
            made.run([task("first", "pid")])
            results = made.run([task("stuck", "holds_the_interpreter", timeout=0.5), task("other", "nap", "0.2")])
        stuck, other = results["stuck"], results["other"]
        assert (str(stuck.status), stuck.ended) == ("timed_out", "killed")
        assert 0.4 < stuck.duration < 0.5 + 0.25 + 0.5
        assert other.ok
        assert "did not stop" in other.attempt_log[0].error.message

    def test_another_attempt_follows(self):
        again = task("t", "swallows_every_stop", attempt_timeout=0.3, retry=2)
        results = runner(workers=1).run([again])
        assert [record.ended for record in results["t"].attempt_log] == ["killed", "killed"]
        assert str(results["t"].status) == "timed_out"


class TestReplacing:
    def test_after_so_many_attempts(self):
        results = runner(1, workers=1, max_tasks=3).run([task(f"t{i}", "pid") for i in range(7)])
        pids = [result.output for result in results.values()]
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]

    def test_a_task_that_takes_too_much_memory_is_ended(self):
        limit = 1_000_000_000
        with runner(workers=1, max_memory=limit) as made:
            results = made.run([task("big", "takes_memory", str(limit)), task("small", "nap", "0.1")])
        assert results["small"].ok
        assert results["big"].error.kind == "worker_crashed"
        assert "max_memory is 1,000 MB" in results["big"].error.message

    def test_a_process_that_grew_is_replaced_between_tasks(self):
        made = runner(1, workers=1, max_memory=500_000_000)
        step = str(25_000_000)
        tasks = [task(f"t{i}", ("keeps_memory", "nap")[i % 2], (step, "0.4")[i % 2]) for i in range(40)]
        results = made.run(tasks)
        assert results.ok
        assert len({result.output for result in results.values()}) > 1
        assert {result.attempts for result in results.values()} == {1}


def test_a_question_is_asked_in_the_callers_process():
    asked = []

    def answer(request):
        asked.append((request.task, request.agent, request.prompt, os.getpid()))
        return f"{request.task}: fine"

    results = runner(human_input=answer).run([task(f"t{i}", "asks", str(i)) for i in range(3)])
    assert [result.output for result in results.values()] == [f"t{i}: fine" for i in range(3)]
    assert sorted(asked) == [(f"t{i}", "a", f"what about {i}?", os.getpid()) for i in range(3)]


def test_a_question_that_nobody_may_be_asked():
    results = runner().run([task("t", "asks")])
    assert (results["t"].error.kind, results["t"].error.type) == ("human_input", "HumanInputRefusedError")


def test_a_hook_that_raises():
    def answer(request):
        raise KeyError("no idea")

    results = runner(human_input=answer).run([task("t", "asks")])
    assert (results["t"].error.type, results["t"].error.message) == ("KeyError", "'no idea'")


PROGRAM = """
import sys, time
from ag2_parallel import ParallelAgentRunner, ParallelTask, ProcessBackend
def seen(event):
    if event.type == "TaskReported":
        print(event.message, flush=True)
tasks = [ParallelTask(f"t{i}", run="work_in_processes:starts_nothing") for i in range(4)]
ParallelAgentRunner(4, backend=ProcessBackend(workers=2), progress=False, observers=[seen]).run(tasks)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    yield process
    process.kill()
    process.communicate()


def all_gone(processes, within):
    _, alive = psutil.wait_procs(processes, timeout=within)
    return alive == []


def running(program):
    """The processes of a program whose four tasks run."""
    pids = {int(program.stdout.readline()) for _ in range(4)}
    assert len(pids) == 2
    found = below(program.pid)
    assert pids < {each.pid for each in found}
    return found


def test_no_child_outlives_a_parent_that_is_killed(program):
    found = running(program)
    program.send_signal(signal.SIGKILL)
    assert all_gone(found, within=3)


def test_nothing_is_said_where_a_parent_is_killed_before_it_has_heard_everything(program):
    found = running(program)
    program.send_signal(signal.SIGSTOP)
    worker = max(found, key=lambda each: each.pid)
    worker.kill()
    assert all_gone([worker], within=3)
    program.kill()
    assert all_gone(found, within=3)
    assert "Traceback" not in program.communicate()[1]


def test_an_interrupt_is_the_parents_to_decide_about(program):
    """Ctrl-C in a terminal goes to the parent alone; once lets tasks finish, twice stops them."""
    found = running(program)
    for each in found:
        each.send_signal(signal.SIGINT)  # as a careless terminal would
    time.sleep(0.3)
    assert all(each.is_running() for each in found)
    program.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert program.poll() is None
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=5)
    assert program.returncode != 0
    assert all_gone(found, within=3)


def test_a_fork_server_that_is_killed_is_replaced():
    with runner() as made:
        first = made.run([task("first", "pid")])["first"].output
        (server,) = psutil.Process().children()
        workers = server.children()
        server.kill()
        assert all_gone(workers, within=3)
        results = made.run([task(f"t{i}", "pid") for i in range(4)])
        assert results.ok
        assert first not in {result.output for result in results.values()}
    assert below() == []

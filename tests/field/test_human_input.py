"""F31: nobody reads standard input, and questions reach the user's own function one at a time."""

import os
import subprocess
import threading

import pytest
from agents import finished, run, script, served, statuses

from ag2_parallel import ParallelTask

pytestmark = pytest.mark.usefixtures("no_threads_left")


PROGRAM = """
server = Address(sys.argv[1])
tasks = [ParallelTask("a", "after 0 TERMINATE", agent=with_human(server, "ALWAYS")),
         ParallelTask("b", "after 0 TERMINATE", agent=with_human(server, "TERMINATE")),
         ParallelTask("c", "hello", agent=ok(server))]
results = run(tasks, max_workers=3, timeout=10)
print(statuses(results))
for name in "ab": print(results[name].error.kind, "|", results[name].error.message.replace(chr(10), " "))
print(results["c"].output)
print(repr(sys.stdin.readline()))
"""


def test_nobody_reads_standard_input(line, tmp_path):
    """A terminal, a pipe and nothing at all: what was typed is still there afterwards."""
    master, terminal = os.openpty()
    with served() as server:
        processes = {}
        for name, stdin in (("terminal", terminal), ("pipe", subprocess.PIPE), ("nothing", subprocess.DEVNULL)):
            (tmp_path / name).mkdir()
            processes[name] = script(tmp_path / name, PROGRAM, server.base_url, line=line, stdin=stdin)
        os.close(terminal)
        os.write(master, b"typed\n")
        processes["pipe"].stdin.write("typed\n")
        processes["pipe"].stdin.flush()
        for name, process in processes.items():
            out, err = finished(process)
            status, first, second, fine, left = out.splitlines()
            assert status == "['failed', 'failed', 'succeeded']", name
            for line in (first, second):
                assert line.startswith("human_input | ")
                assert '"person"' in line
                assert "human_input_mode" in line
            assert fine == "echo: hello"
            assert left == repr("" if name == "nothing" else "typed\n")
            assert err == ""
    os.close(master)


@pytest.mark.parametrize("form", ["pair", "alone", "group"])
@pytest.mark.parametrize("handle_errors", ["collect", "ignore"])
def test_a_question_fails_its_task_at_once_and_no_other(line, form, handle_errors):
    with served() as server:
        tasks = [
            ParallelTask(f"a{i}", "x", agent=line.with_human(server, "ALWAYS", form), max_turns=6) for i in range(3)
        ]
        tasks.append(ParallelTask("c", "hello", agent=line.ok(server)))
        results = run(tasks, max_workers=4, retry=3, handle_errors=handle_errors)
    assert results["c"].ok
    assert set(results.errors) == {"a0", "a1", "a2"}
    for error in results.errors.values():
        assert (error.kind, error.retryable) == ("human_input", False)
        assert '"person"' in error.message
    if handle_errors == "collect":
        assert {results[f"a{i}"].attempts for i in range(3)} == {1}


def test_the_users_function_is_asked_one_question_at_a_time(line):
    asking, most, asked = [], [], []

    def hook(request):
        asking.append(request.task)
        most.append(len(asking))
        threading.Event().wait(0.02)
        asking.remove(request.task)
        asked.append((request.task, request.agent))
        return "exit" if asked.count((request.task, request.agent)) > 1 else f"from the person to {request.task}"

    with served() as server:
        tasks = [ParallelTask(f"a{i}", "x", agent=line.with_human(server, "ALWAYS")) for i in range(8)]
        results = run(tasks, max_workers=8, human_input=hook)
    assert statuses(results) == ["succeeded"] * 8
    assert max(most) == 1
    assert sorted(set(asked)) == [(f"a{i}", "person") for i in range(8)]
    for name, result in results.items():
        assert result.stop_reason == line.AFTER_A_PERSON
        assert f"from the person to {name}" in [message["content"] for message in result.chat_history]


def test_a_function_that_fails_is_its_tasks_failure(line):
    def hook(request):
        raise LookupError("nobody at the desk")

    with served() as server:
        tasks = [
            ParallelTask("a", "x", agent=line.with_human(server, "ALWAYS")),
            ParallelTask("c", "x", agent=line.ok(server)),
        ]
        results = run(tasks, human_input=hook)
    assert statuses(results) == ["failed", "succeeded"]
    assert "nobody at the desk" in results["a"].error.message

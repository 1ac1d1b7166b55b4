"""F12 to F15: errors, agents, crashes and start-up of worker processes."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import httpx
import openai
import psutil
import pytest
from agents import run, served, statuses
from autogen import AssistantAgent, ConversableAgent
from classic_line import ok

from ag2_parallel import NotSerializableError, ParallelAgentRunner, ParallelTask, ProcessBackend

REQUEST = httpx.Request("POST", "http://server/v1")


def replying(reply):
    agent = ConversableAgent("a", llm_config=False, human_input_mode="NEVER")
    agent.register_reply([ConversableAgent, None], lambda *_args, **_more: (True, reply()))
    return agent


def good():
    return replying(lambda: "fine")


def refused():
    def reply():
        response = httpx.Response(429, request=REQUEST, headers={"retry-after": "3"})
        raise openai.RateLimitError("slow", response=response, body=None)

    return replying(reply)


def killed():
    return replying(lambda: os.kill(os.getpid(), signal.SIGKILL))


def leaves():
    return replying(lambda: os._exit(7))


def children():
    return [each for each in psutil.Process().children(recursive=True) if each.is_running()]


def none_left(before=()):
    end = time.monotonic() + 5
    while left := [each for each in children() if each not in before and each.status() != psutil.STATUS_ZOMBIE]:
        assert time.monotonic() < end, left
        time.sleep(0.02)
    return True


def test_f12_errors_are_made_where_they_happen():
    """An exception that cannot be rebuilt in the parent keeps its type, message, status, hint and traceback."""
    with ParallelAgentRunner(backend=ProcessBackend(workers=1), progress=False) as runner:
        results = runner.run([ParallelTask("a", agent=refused), ParallelTask("b", agent=good)])
        error = results["a"].error
        assert (error.type, error.kind, error.status_code, error.retry_after) == (
            "RateLimitError",
            "rate_limit",
            429,
            3.0,
        )
        assert "slow" in error.message
        assert "in reply" in error.traceback
        assert results["b"].output == "fine"
        assert runner.run([ParallelTask("c", agent=good)]).ok  # the processes survive


def test_f13_live_agents_are_refused_before_anything_starts():
    with served() as server:
        live = AssistantAgent("a", llm_config=server.llm_config())
        started = []
        tasks = [ParallelTask("t0", run=lambda ctx: started.append(1)), ParallelTask("t1", agent=live)]
        with pytest.raises(NotSerializableError) as caught:
            run(tasks, backend="process")
        told = str(caught.value)
        assert 'task "t1": agent is a live AssistantAgent' in told
        assert "cannot be sent: agent." in told
        assert "pass a factory" in told
        with pytest.raises(NotSerializableError, match=r'task "t2": agent cannot be sent .* agent > live\.'):
            run([ParallelTask("t2", agent=lambda: live)], backend="process")
        assert started == []
        assert run([ParallelTask("t1", agent=live), ParallelTask("t2", agent=live)], backend="local").ok


def test_f14_a_crash_fails_the_task_that_caused_it_and_no_other():
    before = children()
    with served() as server:
        innocent = [ParallelTask(f"t{i}", f"hi {i}", agent=ok(Address(server.base_url))) for i in range(20)]
        tasks = [ParallelTask("die", agent=killed), ParallelTask("leave", agent=leaves), *innocent]
        results = run(tasks, backend="process", max_workers=2)
    assert statuses(results) == ["failed", "failed", *["succeeded"] * 20]
    assert results["die"].error.kind == results["leave"].error.kind == "worker_crashed"
    assert "killed by signal 9 (SIGKILL)" in results["die"].error.message
    assert "exit code 7" in results["leave"].error.message
    assert [record.ended for record in results["die"].attempt_log] == ["killed", "killed"]
    assert all(result.attempts <= 2 for result in results.values())
    assert [result.output for result in results.succeeded] == [f"echo: hi {i}" for i in range(20)]
    assert none_left(before)


class Address:
    """A model server that has its place in a closure; the server itself stays here."""

    def __init__(self, base_url):
        self.base_url = base_url

    def llm_config(self):
        return {"config_list": [{"model": "m", "base_url": self.base_url, "api_key": "sk-test-0123456789abcdef"}]}


SCRIPT = """
import os
from ag2_parallel import ParallelAgentRunner, ParallelTask

class Doctor:
    def __init__(self, name):
        self.name = name

def opinion(doctor):
    return f"{doctor.name} says {word}"

def build():
    from autogen import ConversableAgent
    agent = ConversableAgent("a", llm_config=False, human_input_mode="NEVER")
    agent.register_reply([ConversableAgent, None], lambda *_a, **_m: (True, opinion(Doctor("Eve"))))
    return agent

word = "yes"
print("main runs")
results = ParallelAgentRunner(backend="process", max_workers=2, progress=False).run(
    [ParallelTask("t", "hi", agent=build), ParallelTask("u", run=lambda ctx: Doctor("Ann"))]
)
print(results["t"].output, results["u"].output.name, type(results["u"].output) is Doctor, results.errors)
"""


@pytest.mark.parametrize("way", ["file", "-c", "stdin"])
def test_f15_no_main_guard_is_needed(way, tmp_path):
    """Workers do not import the main module again: from a script without a guard, `-c` and standard input, as in notebooks."""
    path = tmp_path / "noguard.py"
    path.write_text(SCRIPT, encoding="utf-8")
    command = {"file": [str(path)], "-c": ["-c", SCRIPT], "stdin": ["-"]}[way]
    process = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    most = MostChildren(process.pid)
    out, err = process.communicate(SCRIPT if way == "stdin" else None, timeout=50)
    assert process.returncode == 0, err
    assert out.splitlines() == ["main runs", "Eve says yes Ann True {}"], err
    assert most.end() <= 1 + 2  # the fork server and two workers


class MostChildren:
    """Counts the processes below another, until it ends."""

    def __init__(self, pid):
        self._pid = pid
        self._most = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self):
        try:
            watched = psutil.Process(self._pid)
            while watched.is_running() and watched.status() != psutil.STATUS_ZOMBIE:
                self._most = max(self._most, len(watched.children(recursive=True)))
                time.sleep(0.01)
        except psutil.NoSuchProcess:
            pass

    def end(self):
        self._thread.join(10)
        return self._most


def test_f15_a_class_of_main_with_a_pydantic_model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        textwrap.dedent("""
            from pydantic import BaseModel
            from ag2_parallel import ParallelAgentRunner, ParallelTask
            class Finding(BaseModel):
                score: int
            task = ParallelTask("t", run=lambda ctx: {"score": 3}, output_type=Finding)
            results = ParallelAgentRunner(backend="process", progress=False).run([task])
            print(results["t"].error, repr(results["t"].output), isinstance(results["t"].output, Finding))
            """),
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "None Finding(score=3) True\n", done.stderr


def test_a_config_dict_and_a_factory_by_import_path():
    with served() as server:
        config = {"name": "a", "llm_config": Address(server.base_url).llm_config()}
        tasks = [ParallelTask("d", "one", config), ParallelTask("p", agent="test_worker_processes:good")]
        results = run(tasks, backend="process", max_workers=2)
        assert [result.output for result in results.values()] == ["echo: one", "fine"]
        assert results["d"].usage.total_tokens == server.ledger.tokens_sent > 0

"""Actors that die, get stuck and hang up; a node and a caller's process that are killed. See `work_in_processes`."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from ray_here import MARKS

from ag2_parallel import Ag2ParallelError, ParallelAgentRunner, ParallelTask, RateLimit, RayBackend
from ag2_parallel.testing import ModelServer

HERE = Path(__file__).parent
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
"""What makes nodes on the loopback address find each other, and a client be let in."""

pytestmark = MARKS


def task(name, work, prompt="", **fields):
    return ParallelTask(name, prompt, run=f"work_in_processes:{work}", **fields)


def runner(max_workers=4, **options):
    return ParallelAgentRunner(
        max_workers, backend=RayBackend(actors=options.pop("actors", 2)), progress=False, **options
    )


@pytest.mark.usefixtures("ray_of_this_machine", "no_threads_left")
class TestOnOneMachine:
    def test_tasks_are_spread_over_actors_and_who_kills_one_fails_alone(self):
        with runner() as made:
            first = made.run([task(f"t{i}", "nap", "0.3") for i in range(4)])
            pids = [result.output for result in first.values()]
            assert sorted(map(pids.count, set(pids))) == [2, 2]
            results = made.run([task("guilty", "dies"), *[task(f"t{i}", "nap", "0.5") for i in range(3)]])
        assert [str(result.status) for result in results.values()] == ["failed", *["succeeded"] * 3]
        guilty = results["guilty"]
        assert (guilty.error.kind, guilty.attempts, guilty.ended) == ("worker_crashed", 2, "killed")
        assert "its worker process was lost on" in guilty.error.message
        again = [result for result in results.succeeded if result.attempts == 2]
        assert [[record.ended for record in result.attempt_log] for result in again] == [["killed", "returned"]]

    def test_an_attempt_that_holds_the_interpreter_is_killed_and_its_deadline_holds(self):
        with runner(actors=1) as made:
            made.run([task("first", "pid")])
            results = made.run([task("stuck", "holds_the_interpreter", timeout=0.5), task("other", "nap", "0.2")])
        stuck, other = results["stuck"], results["other"]
        assert (str(stuck.status), stuck.ended) == ("timed_out", "killed")
        assert 0.4 < stuck.duration < 0.5 + 0.25 + 0.5
        assert other.ok

    def test_limits_usage_and_questions_are_those_of_the_caller(self):
        with ModelServer(lambda request: request.last_text, latency=0.05) as server:
            made = [task(f"t{i}", "calls", "2", context={"url": server.base_url}) for i in range(12)]
            with runner(12, rate_limits=[RateLimit(concurrent=3)], human_input=lambda request: request.prompt) as kept:
                results, asked = kept.run(made), kept.run([task("t", "asks", "it")])
        assert results["t3"].output == ["t3/0", "t3/1"]
        assert server.ledger.peak_in_flight <= 3
        assert results.usage.total_tokens == server.ledger.tokens_sent
        assert asked["t"].output == "what about it?"

    def test_large_answers_and_prompts(self):
        text = "x" * 20_000_000
        results = runner(2, actors=1).run([ParallelTask("t", text, run=lambda ctx: ctx.prompt + "!")])
        assert results["t"].output == text + "!"

    @pytest.mark.parametrize(
        ("broken", "why"),
        [
            ({"working_dir": "/nowhere"}, "Ray refuses .* /nowhere is not a valid path"),
            ({"conda": "no-such-environment"}, "no actor could be started: one could not be started.* conda"),
        ],
    )
    def test_an_actor_that_cannot_be_started_fails_the_run_and_says_why(self, broken, why):
        backend = RayBackend(actors=1, runtime_env=broken)
        with pytest.raises(Ag2ParallelError, match=why):
            ParallelAgentRunner(backend=backend, progress=False).run([task("t", "pid")])

    def test_the_command_line(self, ray_of_this_machine, tmp_path):
        (tmp_path / "mine.py").write_text("def work(ctx):\n    return 'done'\n", encoding="utf-8")
        (tmp_path / "tasks.jsonl").write_text('{"name": "t", "prompt": "x", "run": "mine:work"}\n', encoding="utf-8")
        command = [sys.executable, "-m", "ag2_parallel", "run", "tasks.jsonl", "--backend", "ray", "--format", "json"]
        environment = {**os.environ, "RAY_ADDRESS": ray_of_this_machine}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        assert '"done"' in done.stdout


def program(name, *arguments, **environment):
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, HERE / f"{name}.py", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def finished(process, timeout):
    """What a program told at its end; none of the processes that it started is there any more."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == 0, err[-4000:]
    return json.loads(out.splitlines()[-1])


def test_a_caller_that_is_killed_takes_its_ray_along_and_resumes(tmp_path):
    journal, may = tmp_path / "runs.db", tmp_path / "may"
    first = program("ray_of_its_own", journal, may)
    told = []
    while [line.split()[0] for line in told].count("TaskFinished") < 4 or len(told) < 12:
        told.append(first.stdout.readline())
        assert told[-1], first.stderr.read()
    below = psutil.Process(first.pid).children(recursive=True)
    names = {each: each.name() + " ".join(each.cmdline()) for each in below}
    first.kill()
    first.communicate()
    workers = [each for each in below if any(part in names[each] for part in ("RayActor", "raylet/", "gcs_server"))]
    assert len(workers) >= 3
    assert psutil.wait_procs(workers, timeout=5)[1] == []
    may.touch()
    second = finished(program("ray_of_its_own", journal, may), 100)
    assert second == {"outputs": [f"{i} is done" for i in range(8)], "connected": False, "kept": 4}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize("client", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_node_that_is_killed(tmp_path, client):
    """Tasks that ran on it run again elsewhere, all others end as if nothing had been."""
    told = finished(program("ray_nodes", tmp_path, *([free_port()] if client else []), **ON_LOOPBACK), 150)
    assert told["outputs"] == [f"t{i}" for i in range(12)]
    assert len(told["lost"]) == 4
    assert {name for name, ended in told["log"].items() if ended == ["killed", "returned"]} == set(told["lost"])
    assert sum(ended == ["returned"] for ended in told["log"].values()) == 8

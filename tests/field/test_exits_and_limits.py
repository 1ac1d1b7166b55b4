"""F01, F02, F03, F32: time limits of agents hold, what is stopped is gone, and the process ends when it should."""

import asyncio
import gc
import signal
import threading
import time

import pytest
from agents import run, script, served, statuses

from ag2_parallel import ConfigurationError, ParallelTask
from ag2_parallel.testing import RecordingObserver

pytestmark = pytest.mark.usefixtures("no_threads_left")

GRACE = 0.5

STUCK = f"""
import atexit
server = Address(sys.argv[1])
def blocking() -> str: time.sleep(30); return "late"
async def in_a_thread() -> str: await asyncio.to_thread(time.sleep, 30); return "late"
async def swallowing() -> str:
    while True:
        try: await asyncio.sleep(30)
        except asyncio.CancelledError: pass
def spinning() -> str:
    while True:
        try:
            while True: pass
        except BaseException: pass
atexit.register(lambda: print("exit hook", flush=True))
tasks = [
    ParallelTask("reply", agent=sleepy(30)),
    ParallelTask("model", "hang", agent=ok(server)),
    *[ParallelTask(tool.__name__, "call", agent=agent_calling(server, tool)) for tool in (blocking, in_a_thread, swallowing, spinning)],
    ParallelTask("fast", "hello", agent=ok(server), timeout=20),
]
results = run(tasks, max_workers=8, timeout=1.5, grace={GRACE})
print(statuses(results), results["fast"].output, flush=True)
sys.exit(7)
"""


def test_stuck_agents_do_not_keep_the_process(line, tmp_path):
    """F01: gone within two seconds of the last line, exit code and exit hooks kept, nothing said on stderr."""
    with served() as server, script(tmp_path, STUCK, server.base_url, line=line) as process:
        assert process.stdout.readline() == f"{['timed_out'] * 6 + ['succeeded']} echo: hello\n"
        process.wait(timeout=GRACE + 2)
        assert (process.returncode, process.stdout.read()) == (7, "exit hook\n")
        assert process.stderr.read() == ""


def test_the_tasks_limit_beats_the_runners(line):
    """F02."""
    with served() as server:
        tasks = [
            ParallelTask("own", "hang", agent=line.ok(server), timeout=0.4),
            ParallelTask("default", "hang", agent=line.ok(server)),
            ParallelTask("longer", "after 1.2 done", agent=line.ok(server), timeout=30),
            ParallelTask("blocked", agent=line.sleepy(1.8)),
        ]
        before = time.monotonic()
        results = run(tasks, timeout=0.9, max_workers=4, grace=0.2)
        took = time.monotonic() - before
        assert statuses(results) == ["timed_out", "timed_out", "succeeded", "timed_out"]
        assert 0.35 <= results["own"].duration < 0.8 <= results["default"].duration
        assert [results[name].stop_reason for name in ("own", "default", "blocked")] == ["deadline"] * 3
        assert results["default"].ended == "cut"
        assert took < 3
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 2), "the server still works for nobody"


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), True, "1", 10**10])
@pytest.mark.parametrize("name", ["timeout", "attempt_timeout", "idle_timeout"])
def test_limits_without_sense_are_refused_before_anything_starts(line, name, limit):
    """F02."""
    built = []
    with served() as server:
        tasks = [
            ParallelTask("good", "hello", agent=lambda: built.append(1)),
            ParallelTask("bad", "hello", agent=line.ok(server), **{name: limit}),
        ]
        with pytest.raises(ConfigurationError, match=f'task "bad": {name}'):
            run(tasks)
        with pytest.raises(ConfigurationError, match=name):
            run(tasks[:1], **{name: limit})
        assert built == []
        assert server.ledger.count == 0


def test_no_limit_is_none(line):
    """F02."""
    with served() as server:
        assert run([ParallelTask("t", "hello", agent=line.ok(server), timeout=None)], timeout=None).ok


def test_a_stop_really_cancels_what_an_async_tool_awaits(line, capfd):
    """F03: cancelled at once, no thread or coroutine left, nothing said on stderr."""
    started, stopped = threading.Event(), threading.Event()

    async def slow_tool() -> str:
        started.set()
        try:
            await asyncio.gather(asyncio.sleep(60), asyncio.sleep(60))
        except asyncio.CancelledError:
            stopped.set()
            raise
        return "late"

    with served() as server:
        before = set(threading.enumerate())
        results = run([ParallelTask("t", "call", agent=line.agent_calling(server, slow_tool))], timeout=0.5)
        assert started.is_set()
        assert stopped.wait(1)
        assert (results["t"].status, results["t"].ended) == ("timed_out", "unwound")
        assert results["t"].chat_history, "what there was of the transcript is lost"
        new = [thread for thread in threading.enumerate() if thread not in before]
        for thread in new:
            thread.join(2)
        assert [thread.name for thread in new if thread.is_alive() and "model-server" not in thread.name] == []
    gc.collect()
    assert capfd.readouterr().err == ""


def test_tool_errors_carry_the_whole_traceback(line):
    """F03."""

    def deep():
        raise LookupError("deep down")

    async def async_tool() -> str:
        await asyncio.sleep(0)
        deep()
        return ""

    def sync_tool() -> str:
        deep()
        return ""

    seen = RecordingObserver()
    with served() as server:
        run([ParallelTask("t", "call", agent=line.agent_calling(server, async_tool, sync_tool))], observers=[seen])
    told = [event.content for event in seen.events if getattr(event, "name", None) == "tool_failed"]
    assert [each["tool"] for each in told] == ["async_tool", "sync_tool"]
    for each in told:
        assert f"in {each['tool']}" in each["traceback"]
        assert "in deep" in each["traceback"]
        assert "LookupError: deep down" in each["traceback"]


def test_limits_hold_in_any_thread(line):
    """F32: nothing needs a signal."""
    box = []

    def work():
        tasks = [ParallelTask("model", "hang", agent=line.ok(server)), ParallelTask("own", agent=line.sleepy(1.2))]
        box.append(run(tasks, timeout=0.5, grace=0.1, max_workers=2))

    with served() as server:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)
    assert statuses(box[0]) == ["timed_out", "timed_out"]


def test_signals_in_an_agents_code_fail_with_a_hint(line):
    """F32."""
    with served() as server:
        tasks = [
            ParallelTask("t", agent=line.replying(lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN))),
            ParallelTask("u", "hello", agent=line.ok(server)),
        ]
        results = run(tasks)
    assert statuses(results) == ["failed", "succeeded"]
    assert "main thread" in results["t"].error.message
    assert "process" in results["t"].error.message

"""F01, F24, M6: the process ends when it should, whatever is stuck, and a run inside others is cleaned up."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

GRACE = 0.5


def script(tmp_path, body):
    path = tmp_path / "script.py"
    head = """
    import asyncio, atexit, sys, threading, time
    from ag2_parallel import *
    """
    path.write_text(textwrap.dedent(head) + textwrap.dedent(body))
    return [sys.executable, "-W", "error", str(path)]


def ended(process, within):
    """The exit code and what was printed since the last line read, once the process is gone."""
    with process:
        process.wait(timeout=within)
        return process.returncode, process.stdout.read(), process.stderr.read()


@pytest.mark.parametrize(
    "stuck",
    [
        "lambda ctx: time.sleep(30)",
        "swallow",
        "to_thread",
        "spin",
    ],
)
def test_a_stuck_task_does_not_keep_the_process(tmp_path, stuck):
    """F01: gone within the grace and two seconds of the last line, exit code and exit hooks kept."""
    body = f"""
    async def swallow(ctx):
        while True:
            try: await asyncio.sleep(30)
            except asyncio.CancelledError: pass
    async def to_thread(ctx): await asyncio.to_thread(time.sleep, 30)
    def spin(ctx):
        while True:
            try:
                while True: pass
            except BaseException: pass
    atexit.register(lambda: print("exit hook", flush=True))
    runner = ParallelAgentRunner(max_workers=2, timeout=0.5, grace={GRACE}, progress=False)
    results = runner.run([ParallelTask("slow", run={stuck}), ParallelTask("fast", run=lambda ctx: 1)])
    print([str(r.status) for r in results.values()], flush=True)
    sys.exit(7)
    """
    process = subprocess.Popen(script(tmp_path, body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "['timed_out', 'succeeded']\n"
    assert ended(process, GRACE + 2) == (7, "exit hook\n", "")


def test_a_run_still_open_at_the_end_is_stopped(tmp_path):
    body = """
    begun = threading.Event()
    def task(ctx):
        begun.set()
        try:
            while True: ctx.check(); time.sleep(0.01)
        finally: print("unwound", flush=True)
    def background(): ParallelAgentRunner(progress=False).run([ParallelTask("t", run=task)])
    threading.Thread(target=background, daemon=True).start()
    begun.wait()
    print("end", flush=True)
    """
    out = subprocess.run(script(tmp_path, body), capture_output=True, text=True, timeout=20, check=True)
    assert out.stdout.splitlines() == ["end", "unwound"]


BODY = f"""
import logging
logging.basicConfig(level=logging.WARNING, format="%(message)s")
def poll(ctx):
    if ctx.index == 0: print("started", flush=True)
    end = time.monotonic() + 1.0
    while time.monotonic() < end or ctx.index == 9: ctx.check(); time.sleep(0.01)
def stuck(ctx): time.sleep(60)
tasks = [ParallelTask(f"t{{i}}", run=poll) for i in range(4)] + [ParallelTask("stuck", run=stuck, priority=9)] * WITH_STUCK
try:
    ParallelAgentRunner(max_workers=3, grace={GRACE}, progress=False).run(tasks)
except RunInterrupted as error:
    print([str(r.status) for r in error.results.values()], error.results.stop_reason, flush=True)
    sys.exit(130)
"""


def interrupted(tmp_path, with_stuck, times, wait=0.5):
    process = subprocess.Popen(
        script(tmp_path, BODY.replace("WITH_STUCK", str(with_stuck))),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "started\n"
    for _ in range(times):
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
    at = time.monotonic()
    code, out, err = ended(process, 20)
    return code, out, err, time.monotonic() - at


def test_the_first_interrupt_lets_running_tasks_finish(tmp_path):
    code, out, err, _ = interrupted(tmp_path, 0, 1)
    assert (code, out) == (130, "['succeeded', 'succeeded', 'succeeded', 'skipped'] interrupted\n")
    assert "interrupt again" in err


def test_the_second_interrupt_stops_them(tmp_path):
    code, out, err, took = interrupted(tmp_path, 0, 2, wait=0.2)
    assert (code, out) == (130, "['cancelled', 'cancelled', 'cancelled', 'skipped'] interrupted\n")
    assert "once more" in err
    assert took < GRACE + 1


def test_the_third_interrupt_leaves_at_once(tmp_path):
    code, _out, err, took = interrupted(tmp_path, 1, 3, wait=0.2)
    assert code == 130, err
    assert took < 1


def test_a_loop_over_a_stream_closes_it(tmp_path):
    body = """
    def task(ctx):
        if ctx.index == 0: return 1
        try:
            while True: ctx.check(); time.sleep(0.01)
        finally: print("unwound", flush=True)
    try:
        for result in ParallelAgentRunner(max_workers=2, progress=False).stream([ParallelTask(f"t{i}", run=task) for i in range(2)]):
            print("first", flush=True)
    except KeyboardInterrupt:
        print("interrupted", [t.name for t in threading.enumerate() if t.name.startswith("ag2-parallel-e")], flush=True)
    """
    process = subprocess.Popen(script(tmp_path, body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "first\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, out, _ = ended(process, 20)
    assert out.splitlines() == ["unwound", "interrupted []"]


def test_a_forked_child_starts_afresh(tmp_path):
    body = """
    import os, warnings
    warnings.simplefilter("ignore")
    task = [ParallelTask("t", run=lambda ctx: os.getpid())]
    with ParallelAgentRunner(progress=False) as runner:
        here = runner.run(task)["t"].output
        child = os.fork()
        if child == 0:
            os._exit(0 if runner.run(task)["t"].output == os.getpid() else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), here == os.getpid(), runner.run(task).ok, flush=True)
    """
    out = subprocess.run(script(tmp_path, body), capture_output=True, text=True, timeout=30, check=True)
    assert out.stdout == "0 True True\n"


def test_threads_that_cannot_start_lower_the_concurrency(tmp_path):
    body = """
    import resource, threading
    from ag2_parallel.testing import RecordingObserver
    threading.stack_size(64 * 1024 * 1024)
    free = 64 * 1024 * 1024 * 8
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + free, used + free))
    seen = RecordingObserver()
    runner = ParallelAgentRunner(max_workers=50, progress=False, observers=[seen])
    results = runner.run([ParallelTask(f"t{i}", run=lambda ctx: time.sleep(0.05)) for i in range(50)])
    print(results, any("no thread" in e.message for e in seen.events if e.type == "RunWarning"), flush=True)
    """
    out = subprocess.run(script(tmp_path, body), capture_output=True, text=True, timeout=60, check=False)
    assert out.stdout == "RunResults(50 succeeded) True\n", out.stderr

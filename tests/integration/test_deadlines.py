"""S6, M1, F02, F38: a time limit holds whatever the task does, and says how the task's code ended."""

import asyncio
import threading
import time

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask, TaskStopped
from ag2_parallel.testing import RecordingObserver

pytestmark = pytest.mark.usefixtures("no_threads_left")

LATE = 0.25
"""Seconds after its limit by which a result must be there, the measured lag of the engine apart: a promise in seconds."""


def sleep(ctx):
    time.sleep(4)


def spin(ctx):
    while True:
        pass


def spin_and_swallow(ctx):
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            while time.monotonic() < end:
                pass
        except BaseException:
            continue


def poll(ctx):
    while True:
        ctx.check()
        time.sleep(0.01)


async def wait(ctx):
    await asyncio.sleep(60)


async def swallow(ctx):
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            await asyncio.sleep(end - time.monotonic())
        except asyncio.CancelledError:
            continue


async def block_a_thread(ctx):
    await asyncio.to_thread(time.sleep, 4)


async def block_the_loop(ctx):
    time.sleep(4)  # noqa: ASYNC251 - the mistake that is tested


async def spin_the_loop(ctx):
    while True:
        pass


STUCK = {
    "sleep": (sleep, "abandoned"),
    "spin": (spin, "cut"),
    "spin and swallow": (spin_and_swallow, "abandoned"),
    "poll": (poll, "unwound"),
    "wait": (wait, "unwound"),
    "swallow": (swallow, "abandoned"),
    "block a thread": (block_a_thread, "unwound"),
    "block the loop": (block_the_loop, "abandoned"),
    "spin the loop": (spin_the_loop, "cut"),
}


@pytest.mark.parametrize("name", STUCK)
def test_a_stuck_task_is_on_time_and_harms_no_other(name):
    work, ended = STUCK[name]
    tasks = [ParallelTask("stuck", run=work, timeout=0.4), ParallelTask("next", run=lambda ctx: "fine")]
    results = ParallelAgentRunner(max_workers=1, progress=False, grace=0.3).run(tasks)
    stuck = results["stuck"]
    assert (stuck.status, stuck.stop_reason, stuck.error.kind) == ("timed_out", "deadline", "timeout")
    assert stuck.ended == ended
    assert stuck.attempt_log[0].ended == ended
    assert stuck.duration - 0.4 <= LATE + results.metrics["engine_lag_max"]
    assert results["next"].output == "fine"
    assert results["next"].queued - stuck.duration <= LATE + results.metrics["engine_lag_max"], "the slot was not free"
    assert results.metrics["abandoned"] == (ended == "abandoned")


def test_the_tasks_limit_beats_the_runners():
    """F02."""
    tasks = [ParallelTask("own", run=poll, timeout=0.2), ParallelTask("default", run=poll)]
    results = ParallelAgentRunner(timeout=0.6, max_workers=2, progress=False).run(tasks)
    assert [r.status for r in results.values()] == ["timed_out"] * 2
    assert results["own"].duration < 0.5 < results["default"].duration


def test_queue_time_does_not_count():
    """F38."""
    tasks = [ParallelTask(str(i), run=lambda ctx: time.sleep(0.1)) for i in range(12)]
    results = ParallelAgentRunner(max_workers=2, timeout=0.5, progress=False).run(tasks)
    assert results.ok
    assert results["11"].queued > 0.5


def test_attempt_limits_are_retried_after_the_old_attempt_ended():
    running, overlaps = [], []

    def hang_once(ctx):
        overlaps.extend(running)
        running.append(ctx.attempt)
        try:
            if ctx.attempt == 1:
                poll(ctx)
            return "second"
        finally:
            running.remove(ctx.attempt)

    task = ParallelTask("t", run=hang_once, attempt_timeout=0.2, retry=2)
    result = ParallelAgentRunner(progress=False).run([task])["t"]
    assert result.output == "second"
    assert result.attempts == 2
    assert (result.attempt_log[0].status, result.attempt_log[0].ended) == ("timed_out", "unwound")
    assert overlaps == []


def test_idle_limit_counts_from_the_last_sign_of_life():
    def speak_then_stop(ctx):
        for _ in range(6):
            ctx.report("still here")
            time.sleep(0.1)
        time.sleep(2)

    result = ParallelAgentRunner(progress=False, grace=0.1).run(
        [ParallelTask("t", run=speak_then_stop, idle_timeout=0.4)]
    )["t"]
    assert (result.status, result.stop_reason) == ("timed_out", "idle")
    assert result.duration > 0.6


def test_run_limit_cancels_the_running_and_skips_the_rest():
    tasks = [ParallelTask("running", run=poll), ParallelTask("waiting", run=poll)]
    results = ParallelAgentRunner(max_workers=1, run_timeout=0.3, progress=False).run(tasks)
    assert [str(r.status) for r in results.values()] == ["cancelled", "skipped"]
    assert {r.stop_reason for r in results.values()} == {"run_deadline"}
    assert results.stop_reason == "run_timeout"


def test_a_late_answer_never_changes_a_result():
    def late(ctx):
        try:
            poll(ctx)
        except TaskStopped:
            return "too late"

    result = ParallelAgentRunner(timeout=0.2, progress=False).run([ParallelTask("t", run=late)])["t"]
    assert (result.status, result.output, result.ended) == ("timed_out", None, "returned")


def test_after_the_grace_swallowing_the_signal_does_not_spin():
    raised = []

    def stubborn(ctx):
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            try:
                ctx.check()
                time.sleep(0.001)
            except TaskStopped:
                raised.append(time.monotonic())

    result = ParallelAgentRunner(timeout=0.2, grace=0.2, progress=False).run([ParallelTask("t", run=stubborn)])["t"]
    assert result.ended == "abandoned"
    deadline = time.monotonic() + 10
    while threading.active_count() > 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert 2 < len(raised) < 30


def test_past_the_cap_on_abandoned_threads_nothing_new_starts():
    release, abandoned = threading.Event(), threading.Event()
    tasks = [
        ParallelTask("stuck", run=lambda ctx: release.wait(20), timeout=0.2),
        ParallelTask("between", run=lambda ctx: abandoned.wait(20)),
        ParallelTask("after", run=lambda ctx: "ran"),
    ]
    seen = RecordingObserver()
    runner = ParallelAgentRunner(max_workers=1, grace=0.1, max_abandoned=1, progress=False, observers=[seen])
    with_stream = runner.stream(tasks)
    assert next(with_stream).status == "timed_out"
    seen.wait_for(lambda event: event.type == "AttemptEnded" and event.ended == "abandoned")
    abandoned.set()
    assert next(with_stream).name == "between"
    assert not [event for event in seen.events if event.task == "after"]
    release.set()
    assert next(with_stream).output == "ran"
    assert list(with_stream) == []


def test_a_streamed_result_says_stopping_and_an_event_says_how_it_ended():
    seen = RecordingObserver()
    runner = ParallelAgentRunner(timeout=0.2, grace=0.5, progress=False, observers=[seen])
    (result,) = runner.stream([ParallelTask("t", run=spin)])
    assert result.ended == "stopping"
    assert [e.ended for e in seen.events if e.type == "AttemptEnded"] == ["cut"]


def test_limits_hold_in_any_thread():
    """F32."""
    box = []
    thread = threading.Thread(
        target=lambda: box.append(ParallelAgentRunner(timeout=0.3, progress=False).run([ParallelTask("t", run=poll)]))
    )
    thread.start()
    thread.join(20)
    assert box[0]["t"].status == "timed_out"

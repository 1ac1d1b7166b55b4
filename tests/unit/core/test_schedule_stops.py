"""The stop of a run, and the three ways to handle errors."""

import pytest
from schedule_script import (
    BROKEN,
    Script,
    cancelled,
    failed,
    finish,
    settled,
    skipped,
    started,
    succeeded,
    task,
    thrice,
    timed_out,
)

from ag2_parallel.core.commands import Ended, Finish, Start, Stop, Stopping


@pytest.mark.parametrize("strategy", ["collect", "ignore"])
def test_every_task_runs_where_failures_are_results(strategy):
    run = Script(handle_errors=strategy)
    run.add(task(0), task(1))
    run.close()
    assert started(run.fails(0)) == [1]
    assert finish(run.succeeds(1)) == Finish(None)


def test_fail_fast_stops_at_the_first_bad_end():
    run = Script(max_workers=2, handle_errors="fail_fast")
    run.add(task(0), task(1), task(2), task(3, 0))
    run.close()
    assert run.fails(0) == [
        Ended(0, 1, "returned"),
        failed(0),
        skipped(3, "dependency", because=0),
        Stopping("fail_fast", True),
        Stop(1, 1, "fail_fast"),
        cancelled(1, "fail_fast"),
        skipped(2, "fail_fast"),
    ]
    assert run.unwinds(1) == [Ended(1, 1, "unwound"), Finish("fail_fast")]


def test_fail_fast_waits_for_the_retries():
    run = Script(handle_errors="fail_fast")
    run.add(task(0, retry=thrice(initial=0.0)))
    run.fails(0)
    assert Stopping("fail_fast", True) not in run.fails(0, 2)
    assert Stopping("fail_fast", True) in run.fails(0, 3)


def test_fail_fast_stops_at_a_timeout_too():
    run = Script(handle_errors="fail_fast")
    run.add(task(0, timeout=1.0), task(1))
    assert run.at(1.0)[-2:] == [Stopping("fail_fast", True), skipped(1, "fail_fast")]


def test_first_stage_lets_running_tasks_finish_without_retries():
    run = Script(max_workers=2)
    run.add(task(0, retry=thrice()), task(1), task(2), task(3, 1))
    run.close()
    stopping = [Stopping("interrupted", False), skipped(2, "cancelled"), skipped(3, "cancelled")]
    assert run.stop(stop_running=False) == stopping
    assert run.fails(0) == [Ended(0, 1, "returned"), failed(0)]
    assert run.succeeds(1) == [Ended(1, 1, "returned"), succeeded(1), Finish("interrupted")]


def test_second_stage_stops_what_runs_and_the_first_reason_stays():
    run = Script()
    run.add(task(0))
    run.close()
    run.stop(stop_running=False)
    assert run.stop("cancelled", stop_running=True) == [
        Stopping("cancelled", True),
        Stop(0, 1, "cancelled"),
        cancelled(0),
    ]
    assert run.stop("interrupted", stop_running=True) == []
    assert run.stop("interrupted", stop_running=False) == []
    assert finish(run.unwinds(0)) == Finish("interrupted")
    assert run.stop(stop_running=True) == []


def test_a_stop_after_the_end_comes_too_late():
    run = Script()
    run.add(task(0))
    run.close()
    run.succeeds(0)
    assert run.stop(stop_running=True) == []


def test_a_failure_after_the_first_stage_does_not_stop_the_others():
    run = Script(max_workers=2, handle_errors="fail_fast")
    run.add(task(0), task(1))
    run.stop(stop_running=False)
    assert run.fails(0) == [Ended(0, 1, "returned"), failed(0)]


@pytest.mark.parametrize("stop_running", [True, False])
def test_a_task_in_backoff_keeps_its_last_failure(stop_running):
    run = Script(max_workers=3)
    run.add(task(0, retry=thrice()), task(1, attempt_timeout=1.0, retry=thrice(initial=30.0)))
    run.at(1.0)
    run.unwinds(1)
    run.fails(0)
    assert settled(run.stop(stop_running=stop_running)) == [
        failed(0),
        timed_out(1, "attempt_deadline", ended="unwound"),
    ]


def test_a_task_whose_attempt_unwinds_for_a_retry_keeps_its_timeout():
    run = Script()
    run.add(task(0, idle_timeout=1.0, retry=thrice()))
    run.close()
    run.at(1.0)
    assert settled(run.stop(stop_running=False)) == [timed_out(0, "idle")]
    assert run.unwinds(0) == [Ended(0, 1, "unwound"), Finish("interrupted")]


def test_a_retried_task_that_waits_for_a_slot_keeps_its_last_failure():
    run = Script()
    run.add(task(0, retry=thrice()), task(1))
    run.fails(0)
    run.at(1.0)
    assert settled(run.stop(stop_running=False)) == [failed(0)]


def test_tasks_added_after_a_stop_are_skipped():
    run = Script()
    run.stop(stop_running=False)
    assert run.add(task(0), task(1, 0)) == [skipped(0, "cancelled"), skipped(1, "cancelled")]
    assert run.close() == [Finish("interrupted")]


def test_the_limit_of_the_run():
    run = Script(run_timeout=10.0)
    run.add(task(0), task(1))
    assert run.at(10.0) == [
        Stopping("run_timeout", True),
        Stop(0, 1, "run_deadline"),
        cancelled(0, "run_deadline"),
        skipped(1, "run_deadline"),
    ]
    assert run.add(task(2)) == [skipped(2, "run_deadline")]


def test_nothing_starts_past_the_limit_of_the_run_even_if_the_tick_is_late():
    run = Script(run_timeout=10.0)
    run.add(task(0), task(1))
    run.now = 10.5
    assert started(run.succeeds(0)) == []
    assert settled(run.at(10.5)) == [skipped(1, "run_deadline")]


def test_the_limit_of_the_run_does_not_touch_a_run_that_only_unwinds():
    run = Script(run_timeout=10.0, grace=5.0)
    run.add(task(0, timeout=9.0))
    run.close()
    run.at(9.0)
    assert run.at(10.0) == []
    assert finish(run.unwinds(0)) == Finish(None)


def test_a_source_that_broke_is_the_reason_of_the_run():
    run = Script()
    run.add(task(0))
    run.close("source_error")
    assert finish(run.succeeds(0)) == Finish("source_error")


def test_an_attempt_refused_after_the_stop_is_at_its_end():
    run = Script()
    run.add(task(0))
    run.close()
    run.stop(stop_running=True)
    assert run.refused(0) == [Ended(0, 1, "unwound"), Finish("interrupted")]


def test_a_start_refused_in_the_first_stage_is_skipped():
    run = Script(max_workers=2)
    run.add(task(0), task(1, retry=thrice(initial=0.0)))
    run.fails(1)
    run.stop(stop_running=False)
    assert run.refused(0) == [skipped(0, "cancelled")]
    assert run.refused(1, 2) == [failed(1, BROKEN)]


def test_a_stop_while_starts_are_held_back():
    run = Script()
    run.add(task(0))
    run.close()
    run.refused(0)
    assert run.stop(stop_running=False) == [
        Stopping("interrupted", False),
        skipped(0, "cancelled"),
        Finish("interrupted"),
    ]
    assert run.schedule.next_wake() is None


def test_the_machine_can_start_again_what_was_held_back():
    run = Script()
    run.add(task(0))
    run.refused(0)
    assert run.at(1.0) == [Start(0, 1, None)]

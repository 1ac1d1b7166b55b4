"""Limits, retries, and what becomes of attempts that do not end."""

from schedule_script import (
    BAD_KEY,
    BROKEN,
    Script,
    failed,
    finish,
    skipped,
    started,
    succeeded,
    task,
    thrice,
    timed_out,
)

from ag2_parallel.core.commands import Ended, Finish, Insist, Retry, Returned, Start, Stop, Stopping
from ag2_parallel.results import TaskError, TaskStatus


def test_at_the_limit_the_outcome_is_there_and_the_slot_is_free():
    run = Script()
    assert run.add(task(0, timeout=5.0), task(1)) == [Start(0, 1, 5.0)]
    assert run.schedule.next_wake() == 5.0
    assert run.at(5.0) == [Stop(0, 1, "deadline"), timed_out(0), Start(1, 1, None)]


def test_a_late_answer_changes_nothing():
    run = Script()
    run.add(task(0, timeout=5.0))
    run.at(5.0)
    assert run.succeeds(0) == [Ended(0, 1, "returned")]
    assert run.schedule.status_of(0) is TaskStatus.TIMED_OUT


def test_an_answer_that_is_there_before_the_stop_counts():
    run = Script()
    run.add(task(0, timeout=5.0))
    run.now = 5.1
    assert succeeded(0) in run.succeeds(0)


def test_the_deadline_of_a_start_is_the_nearest_limit():
    run = Script(max_workers=3, run_timeout=10.0)
    run.now = 4.0
    commands = run.add(task(0), task(1, timeout=5.0), task(2, timeout=5.0, attempt_timeout=1.0))
    assert [command.deadline for command in commands] == [10.0, 9.0, 5.0]


def test_queue_time_does_not_count():
    run = Script()
    run.add(task(0), task(1, timeout=5.0))
    run.now = 100.0
    assert run.succeeds(0)[-1] == Start(1, 1, 105.0)


def test_a_failure_is_tried_again_after_its_backoff():
    run = Script()
    run.add(task(0, retry=thrice()), task(1))
    assert run.fails(0) == [Ended(0, 1, "returned"), Retry(0, 1, 1.0, BROKEN), Start(1, 1, None)]
    assert run.schedule.waiting_count == 1
    assert run.at(1.0) == []
    assert run.succeeds(1)[-1] == Start(0, 2, None)
    run.fails(0, 2)
    assert run.at(3.0) == [Start(0, 3, None)]
    assert run.fails(0, 3)[-1] == failed(0, attempts=3)


def test_what_cannot_be_mended_is_not_tried_again():
    run = Script()
    run.add(task(0, retry=thrice()))
    assert run.fails(0, error=BAD_KEY)[-1] == failed(0, BAD_KEY)


def test_a_backoff_past_the_limit_settles_the_failure_at_once():
    run = Script()
    run.add(task(0, retry=thrice(), timeout=5.0))
    run.now = 4.5
    assert run.fails(0)[-1] == failed(0)


def test_the_limit_runs_through_backoff_and_the_queue():
    run = Script()
    run.add(task(0, retry=thrice(), timeout=5.0), task(1))
    run.fails(0)
    assert run.at(5.0) == [timed_out(0, ended="returned")]
    assert started(run.succeeds(1)) == []


def test_no_attempt_starts_past_its_limit_even_if_the_tick_is_late():
    run = Script(handle_errors="fail_fast")
    run.add(task(0, retry=thrice(initial=0.0), timeout=5.0), task(1, priority=1), task(2))
    run.succeeds(1)
    run.fails(0)
    run.schedule.pause(run.now)
    run.fails(0, 2)
    run.now = 6.0
    commands = run.schedule.resume(run.now)
    assert commands == [
        timed_out(0, attempts=2, ended="returned"),
        Stopping("fail_fast", True),
        skipped(2, "fail_fast"),
    ]


def test_an_attempt_at_its_limit_is_tried_again_once_its_code_has_ended():
    run = Script()
    run.add(task(0, retry=thrice(), attempt_timeout=2.0))
    stop, retry = run.at(2.0)
    assert stop == Stop(0, 1, "attempt_deadline")
    assert (retry.attempt, retry.delay, retry.error.kind, retry.error.type) == (1, 1.0, "timeout", "TimeoutError")
    assert retry.error.message == "attempt 1 took longer than its limit of 2 s"
    run.now = 2.5
    assert run.unwinds(0) == [Ended(0, 1, "unwound")]
    assert run.at(3.0) == [Start(0, 2, 5.0)]


def test_an_attempt_that_ends_after_the_backoff_is_followed_at_once():
    run = Script(grace=5.0)
    run.add(task(0, retry=thrice(), attempt_timeout=2.0))
    run.at(2.0)
    assert run.at(4.0) == []
    assert run.unwinds(0) == [Ended(0, 1, "unwound"), Start(0, 2, 6.0)]


def test_the_last_attempt_at_its_limit_settles():
    run = Script()
    run.add(task(0, attempt_timeout=2.0))
    assert run.at(2.0) == [Stop(0, 1, "attempt_deadline"), timed_out(0, "attempt_deadline")]


def test_where_limits_fall_together_the_wider_one_wins():
    run = Script()
    run.add(task(0, timeout=2.0, attempt_timeout=2.0, idle_timeout=2.0, retry=thrice(initial=0.0)))
    assert run.at(2.0) == [Stop(0, 1, "deadline"), timed_out(0)]


def test_the_task_limit_passes_while_an_attempt_unwinds():
    run = Script(grace=5.0)
    run.add(task(0, timeout=4.0, attempt_timeout=2.0, retry=thrice()))
    run.at(2.0)
    assert run.at(4.0) == [timed_out(0)]
    assert run.unwinds(0) == [Ended(0, 1, "unwound")]


def test_signs_of_life_keep_an_attempt_going():
    run = Script()
    run.add(task(0, idle_timeout=2.0))
    for second in range(1, 6):
        assert run.at(float(second)) == []
        run.alive(0)
    assert run.at(6.9) == []
    assert run.at(7.0) == [Stop(0, 1, "idle"), timed_out(0, "idle")]
    run.alive(0)
    run.unwinds(0)
    run.alive(0)


def test_waiting_is_not_idling():
    run = Script()
    run.add(task(0, idle_timeout=2.0))
    run.waiting(0, True)
    run.waiting(0, True)
    assert run.at(50.0) == []
    run.waiting(0, False)
    assert run.at(60.0) == []
    run.waiting(0, False)
    run.waiting(0, False)
    assert run.at(61.9) == []
    assert run.at(62.0)[0] == Stop(0, 1, "idle")
    run.unwinds(0)
    run.waiting(0, False)


def test_the_end_of_a_wait_is_a_sign_of_life():
    run = Script()
    run.add(task(0, idle_timeout=2.0))
    run.waiting(0, True)
    run.now = 1.9
    run.waiting(0, False)
    assert run.at(3.8) == []
    assert run.at(3.9)[0] == Stop(0, 1, "idle")


def test_limits_stand_still_while_a_task_waits_where_waiting_does_not_count():
    run = Script(count_waiting=False)
    run.add(task(0, timeout=2.0))
    run.now = 1.0
    run.waiting(0, True)
    run.waiting(0, True)
    assert run.at(50.0) == []
    run.waiting(0, False)
    assert run.at(60.0) == []
    run.waiting(0, False)
    assert run.at(60.9) == []
    assert run.at(61.0)[0] == Stop(0, 1, "deadline")


def test_the_limit_of_an_attempt_stands_still_too():
    run = Script(count_waiting=False)
    run.add(task(0, attempt_timeout=2.0))
    run.waiting(0, True)
    run.now = 10.0
    run.waiting(0, False)
    assert run.at(11.9) == []
    assert run.at(12.0)[0] == Stop(0, 1, "attempt_deadline")


def test_waiting_for_a_person_always_counts():
    run = Script(count_waiting=False)
    run.add(task(0, timeout=2.0))
    run.waiting(0, True, on_person=True)
    assert run.at(2.0)[0] == Stop(0, 1, "deadline")


def test_waiting_counts_unless_it_is_said_not_to():
    run = Script()
    run.add(task(0, timeout=2.0))
    run.waiting(0, True)
    assert run.at(2.0)[0] == Stop(0, 1, "deadline")


def test_a_stopped_attempt_has_its_grace_is_insisted_on_and_given_up():
    run = Script(grace=1.0, insist_for=0.1)
    run.add(task(0, timeout=5.0))
    run.close()
    run.at(5.0)
    assert run.at(6.0) == [Insist(0, 1)]
    assert run.schedule.next_wake() == 6.1
    assert run.at(6.1) == [Ended(0, 1, "abandoned"), Finish(None)]
    assert run.schedule.abandoned == 1
    assert run.schedule.next_wake() is None
    assert run.succeeds(0) == [Returned(0, 1)]
    assert run.schedule.abandoned == 0


def test_the_run_waits_for_what_unwinds():
    run = Script()
    run.add(task(0, timeout=5.0))
    run.close()
    assert not run.schedule.finished
    run.at(5.0)
    assert not run.schedule.finished
    assert finish(run.unwinds(0)) == Finish(None)


def test_an_abandoned_attempt_is_followed_by_the_next():
    run = Script(grace=1.0, insist_for=0.5)
    run.add(task(0, attempt_timeout=2.0, retry=thrice(initial=0.0)))
    run.at(2.0)
    run.at(3.0)
    assert run.at(3.5) == [Ended(0, 1, "abandoned"), Start(0, 2, 5.5)]
    assert run.succeeds(0) == [Returned(0, 1)]
    assert succeeded(0, attempts=2) in run.succeeds(0, 2)


def test_limits_hold_for_the_next_attempt_also_when_the_abandoned_one_comes_back():
    run = Script(max_workers=2, grace=0.0, insist_for=0.0)
    for index in (0, 1):
        run.add(task(index, attempt_timeout=2.0, timeout=5.0, retry=thrice(initial=0.0)))
    assert started(run.at(2.0)) == [0, 1]
    assert run.succeeds(0) == [Returned(0, 1)]
    assert run.succeeds(1) == [Returned(1, 1)]
    assert Stop(1, 2, "budget") in run.schedule.cut_off(1, 2, BROKEN, run.now)
    assert Stop(0, 2, "cancelled") in run.stop(stop_running=True)


def test_nothing_is_tried_again_past_its_limit_though_waiting_does_not_count():
    run = Script(count_waiting=False, grace=0.0)
    run.add(task(0, idle_timeout=0.5, timeout=1.0, retry=thrice(initial=0.25)))
    assert timed_out(0, "idle") in run.at(1.5), "the tick is late"


def abandoned_two(**policy):
    run = Script(max_workers=2, grace=0.0, insist_for=0.0, max_abandoned=2, **policy)
    run.add(task(0, timeout=1.0), task(1, timeout=1.0), task(2), task(3))
    assert started(run.at(1.0)) == []
    assert run.schedule.abandoned == 2
    return run


def test_with_too_many_abandoned_nothing_starts_until_one_comes_back():
    run = abandoned_two()
    run.now = 30.0
    assert run.succeeds(0) == [Returned(0, 1), Start(2, 1, None), Start(3, 1, None)]
    assert run.schedule.next_wake() is None


def test_if_none_comes_back_the_run_stops():
    run = abandoned_two()
    assert run.schedule.next_wake() == 61.0
    assert run.at(61.0) == [Stopping("abandoned_threads", False), skipped(2, "cancelled"), skipped(3, "cancelled")]
    assert run.close() == [Finish("abandoned_threads")]


def test_while_paused_patience_does_not_run_out():
    run = abandoned_two(abandoned_patience=5.0)
    run.schedule.pause(run.now)
    assert run.at(6.0) == []
    run.schedule.resume(run.now)
    assert run.schedule.next_wake() == 11.0


def test_a_backoff_asked_for_by_the_server():
    run = Script()
    run.add(task(0, retry=thrice()))
    busy = TaskError(type="RateLimitError", message="slow down", kind="rate_limit", retry_after=7.0)
    assert Retry(0, 1, 7.0, busy) in run.fails(0, error=busy)
    assert started(run.at(6.9)) == []
    assert started(run.at(7.0)) == [0]

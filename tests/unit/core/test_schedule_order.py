"""Which task starts when: slots, priority, dependencies, lazy input, pausing."""

import pytest
from schedule_script import (
    BROKEN,
    MISSING,
    Script,
    failed,
    finish,
    settled,
    skipped,
    started,
    succeeded,
    task,
    thrice,
)

from ag2_parallel.core.commands import Ended, Finish, Start, Stop
from ag2_parallel.core.transitions import IllegalTransitionError
from ag2_parallel.results import TaskStatus


def test_one_task_from_beginning_to_end():
    run = Script()
    assert run.add(task(0)) == [Start(0, 1, None)]
    assert run.close() == []
    assert run.schedule.next_wake() is None
    assert run.succeeds(0) == [Ended(0, 1, "returned"), succeeded(0), Finish(None)]
    assert run.schedule.finished


def test_an_empty_run_finishes_when_its_input_closes():
    assert Script().close() == [Finish(None)]


def test_no_more_run_than_there_are_slots():
    run = Script(max_workers=2)
    assert started(run.add(*map(task, range(4)))) == [0, 1]
    assert (run.schedule.running, run.schedule.waiting_count, run.schedule.added) == (2, 2, 4)
    assert started(run.succeeds(1)) == [2]
    assert run.schedule.peak_running == 2


def test_many_starts_come_in_several_ticks_one_right_after_the_other():
    run = Script(max_workers=5, starts_at_once=2)
    assert started(run.add(*map(task, range(6)))) == [0, 1]
    assert run.schedule.next_wake() == run.now
    assert started(run.succeeds(0)) == [], "however much happens in between, no more start than in each tick"
    assert started(run.at(run.now)) == [2, 3]
    assert started(run.at(run.now)) == [4, 5]
    assert run.schedule.next_wake() is None


def test_what_has_not_started_yet_does_not_start_once_the_run_stops():
    run = Script(max_workers=3, starts_at_once=1)
    run.add(*map(task, range(3)))
    commands = run.stop(stop_running=False)
    assert settled(commands) == [skipped(1, "cancelled"), skipped(2, "cancelled")]
    assert started(run.at(run.now)) == []


def test_higher_priority_first_then_input_order():
    run = Script()
    commands = run.add(task(0), task(1, priority=-1), task(2, priority=5), task(3), task(4, priority=5))
    order = started(commands)
    while len(order) < 5:
        order += started(run.succeeds(order[-1]))
    assert order == [2, 4, 0, 3, 1]


def test_a_retried_task_keeps_its_place():
    run = Script()
    run.add(task(0, retry=thrice(initial=0.0)), task(1))
    assert started(run.fails(0)) == [0]


def test_a_task_starts_the_moment_its_own_dependencies_succeeded():
    run = Script(max_workers=4)
    assert started(run.add(task(0), task(1), task(2, 0), task(3, 0, 1, 1))) == [0, 1]
    assert started(run.succeeds(0)) == [2]
    assert started(run.succeeds(1)) == [3]


def test_dependencies_may_come_later_in_the_same_batch_or_be_settled_already():
    run = Script(max_workers=4)
    assert started(run.add(task(0, 1), task(1))) == [1]
    assert started(run.succeeds(1)) == [0]
    assert started(run.add(task(2, 1))) == [2]
    run.fails(2)
    assert run.add(task(3, 1, 2)) == [skipped(3, "dependency", because=2)]


def test_whoever_waits_for_a_task_that_did_not_succeed_is_skipped_in_cascade():
    run = Script(max_workers=4)
    run.add(task(0), task(1, 0), task(2, 1), task(3, 0, 2), task(4))
    commands = run.fails(0)
    assert settled(commands)[0] == failed(0)
    assert set(settled(commands)[1:]) == {
        skipped(1, "dependency", because=0),
        skipped(2, "dependency", because=1),
        skipped(3, "dependency", because=0),
    }
    assert run.schedule.status_of(3) is TaskStatus.SKIPPED
    assert run.schedule.status_of(4) is None


def test_a_long_chain_falls_without_recursion():
    count = 50_000
    run = Script()
    run.add(task(0), *(task(n, n - 1) for n in range(1, count)))
    run.close()
    commands = run.fails(0)
    assert len(settled(commands)) == count
    assert finish(commands) == Finish(None)


def test_a_task_with_a_problem_never_starts():
    run = Script(max_workers=4)
    assert run.add(task(0, 1), task(1, problem=MISSING), task(2)) == [
        failed(1, MISSING, attempts=0, ended=None),
        skipped(0, "dependency", because=1),
        Start(2, 1, None),
    ]


def test_nothing_starts_while_paused():
    run = Script(max_workers=2)
    run.add(task(0), task(1), task(2))
    assert run.schedule.pause(run.now) == []
    assert started(run.succeeds(0)) == []
    assert started(run.schedule.resume(run.now)) == [2]


def test_the_number_of_slots_changes_while_running():
    run = Script(max_workers=1)
    run.add(*map(task, range(6)))
    assert started(run.schedule.set_max_workers(3, run.now)) == [1, 2]
    run.schedule.set_max_workers(0, run.now)
    assert run.schedule.max_workers == 1
    assert started([*run.succeeds(0), *run.succeeds(1)]) == []
    assert started(run.succeeds(2)) == [3]


def test_without_a_thread_fewer_run_at_once():
    run = Script(max_workers=4)
    run.add(*(task(n, timeout=5.0) for n in range(4)))
    assert run.refused(2) == []
    assert run.refused(3) == []
    assert (run.schedule.max_workers, run.schedule.peak_running) == (2, 2)
    run.now = 3.0
    assert run.succeeds(0)[-1] == Start(2, 1, 8.0), "its time begins with the start that came about"
    assert Stop(2, 1, "deadline") not in run.at(7.9)
    assert Stop(2, 1, "deadline") in run.at(8.0)


def test_without_any_thread_the_start_is_tried_again_in_a_second():
    run = Script(max_workers=2)
    run.add(task(0), task(1))
    assert run.refused(0) == run.refused(1) == []
    assert run.schedule.next_wake() == 1.0
    assert started(run.at(0.5)) == []
    assert run.at(1.0) == [Start(0, 1, None)]


def test_a_refused_retry_keeps_its_number_and_its_time():
    run = Script()
    run.add(task(0, retry=thrice(initial=0.0), timeout=9.0))
    run.now = 2.0
    assert run.fails(0)[-1] == Start(0, 2, 9.0)
    run.refused(0, 2)
    assert run.at(3.0) == [Start(0, 2, 9.0)]


def test_impossible_happenings_are_internal_errors():
    run = Script()
    run.add(task(3))
    with pytest.raises(IllegalTransitionError, match="attempt 2 of task 3 cannot end"):
        run.succeeds(3, attempt=2)
    with pytest.raises(IllegalTransitionError, match="task 3 was added after task 3"):
        run.add(task(3))
    with pytest.raises(IllegalTransitionError, match="task 4 depends on task 9, never added"):
        run.add(task(4, 9))
    run = Script()
    run.close()
    with pytest.raises(IllegalTransitionError, match="closed"):
        run.add(task(0))


def test_a_failure_without_an_error_still_says_something():
    run = Script()
    run.add(task(0))
    (result,) = settled(run.fails(0, error=None))
    assert "without saying why" in result.error.message


def test_counts_by_status():
    run = Script(max_workers=3)
    run.add(task(0), task(1), task(2, 1))
    run.succeeds(0)
    run.fails(1, error=BROKEN)
    counts = {status: count for status, count in run.schedule.counts().items() if count}
    assert counts == {TaskStatus.SUCCEEDED: 1, TaskStatus.FAILED: 1, TaskStatus.SKIPPED: 1}
    assert run.schedule.status_of(99) is None

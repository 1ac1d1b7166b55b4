"""The parts below the schedule: tables, the heap, memory."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_script import BROKEN, Script, task

from ag2_parallel.core.lazy_heap import LazyHeap
from ag2_parallel.core.schedule import Schedule, SchedulePolicy
from ag2_parallel.core.transitions import (
    ATTEMPT_TRANSITIONS,
    TASK_TRANSITIONS,
    AttemptEvent,
    AttemptState,
    IllegalTransitionError,
    TaskEvent,
    TaskState,
    next_attempt_state,
    next_task_state,
)
from ag2_parallel.policies import RetryPolicy

TABLES = [
    (TASK_TRANSITIONS, TaskState, TaskEvent, TaskState.BLOCKED, TaskState.SETTLED),
    (ATTEMPT_TRANSITIONS, AttemptState, AttemptEvent, AttemptState.RUNNING, AttemptState.ENDED),
]


@pytest.mark.parametrize(("table", "states", "events", "first", "last"), TABLES)
def test_every_state_is_reached_and_leads_to_the_last(table, states, events, first, last):
    assert set(table) == set(states)
    assert {event for moves in table.values() for event in moves} == set(events)
    assert table[last] == {}

    def reach(state, seen):
        return (
            seen if state in seen else {state}.union(*(reach(n, seen | {state}) for n in table[state].values()), seen)
        )

    assert reach(first, set()) == set(states)
    assert all(last in reach(state, set()) for state in states)


def test_a_move_that_is_not_in_the_table_is_refused():
    with pytest.raises(IllegalTransitionError, match="task 3 is settled and cannot be started"):
        next_task_state(3, TaskState.SETTLED, TaskEvent.STARTED)
    with pytest.raises(IllegalTransitionError, match="attempt 2 of task 3 is ended: stop is impossible"):
        next_attempt_state(3, 2, AttemptState.ENDED, AttemptEvent.STOP)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=300), st.randoms())
def test_a_heap_gives_back_what_was_not_taken_back(pushed, rng):
    heap = LazyHeap()
    entries = [(heap.push(key, serial, item=(key, serial)), keep) for serial, (key, keep) in enumerate(pushed)]
    rng.shuffle(entries)
    for entry, keep in entries:
        if not keep:
            heap.discard(entry)
            heap.discard(entry)
    kept = sorted((key, serial) for serial, (key, keep) in enumerate(pushed) if keep)
    assert len(heap) == len(kept)
    assert [heap.pop() for _ in kept] == kept
    assert heap.first() is None
    with pytest.raises(IndexError):
        heap.pop()


def test_what_is_taken_back_does_not_pile_up():
    heap = LazyHeap()
    for serial in range(10_000):
        heap.discard(heap.push(3600.0, serial, item="alarm"))
        assert heap.held <= 70


def test_alarms_of_tasks_long_settled_do_not_pile_up():
    run = Script(max_workers=4)
    held = []
    for index in range(3000):
        run.now = float(index)
        run.add(task(index, timeout=3_600_000.0, attempt_timeout=3_600_000.0, idle_timeout=3_600_000.0))
        run.alive(index)
        run.succeeds(index)
        held.append(run.schedule._timers.held + len(run.schedule._backlog.records) + len(run.schedule._attempts._open))
    assert max(held) < 200


def test_signs_of_life_cost_no_memory():
    run = Script()
    run.add(task(0, idle_timeout=10.0))
    for step in range(5000):
        run.now = step / 100
        run.alive(0)
        assert run.schedule._timers.held == 1


def test_nothing_of_a_stopped_backlog_stays():
    run = Script()
    run.add(*map(task, range(2000)))
    run.stop(stop_running=True)
    assert run.schedule._backlog._ready.held <= 64 + 2
    assert not run.schedule._backlog.records


def test_jitter_comes_from_the_random_numbers_passed_in():
    def delay(seed):
        schedule = Schedule(SchedulePolicy(max_workers=1), 0.0, random.Random(seed))
        schedule.add([task(0, retry=RetryPolicy(2))], 0.0)
        return schedule.ended(0, 1, ok=False, error=BROKEN, how="returned", now=0.0)[1].delay

    assert delay(1) == delay(1) != delay(2)


def test_a_sweep_keeps_the_order():
    rng = random.Random(0)
    keys = list(range(1000))
    rng.shuffle(keys)
    heap = LazyHeap()
    entries = {key: heap.push(key, item=key + 1) for key in keys}
    kept = set(rng.sample(keys, 300))
    for key in keys:
        if key not in kept:
            heap.discard(entries[key])
    assert heap.held < 1000
    assert [heap.pop() - 1 for _ in kept] == sorted(kept)

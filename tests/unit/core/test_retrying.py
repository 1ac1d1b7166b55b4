"""Whether and when a task is tried again."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ag2_parallel.core.judging import judged, judged_beforehand
from ag2_parallel.core.retrying import asked_delay, backoff, decide
from ag2_parallel.error_kinds import ERROR_KINDS, PERMANENT_KINDS
from ag2_parallel.policies import MAX_SECONDS, RetryPolicy
from ag2_parallel.results import TaskError

RNG = random.Random(0)


def failure(kind="agent", **fields):
    return TaskError(type="SomeError", message="it broke", kind=kind, **fields)


def steady(attempts=5, **fields):
    return RetryPolicy(attempts, jitter=False, **fields)


def test_waits_grow_to_the_maximum():
    policy = steady(initial=1.0, factor=3.0, maximum=20.0)
    assert [backoff(policy, n, RNG) for n in (1, 2, 3, 4, 5)] == [1.0, 3.0, 9.0, 20.0, 20.0]


def test_a_wait_too_large_for_a_float_is_the_maximum():
    assert backoff(steady(1000, initial=0.1, factor=100.0), 999, RNG) == 30.0


@given(st.integers(1, 1000), st.floats(0, 100), st.floats(1, 100), st.floats(0, 1000), st.integers())
def test_jitter_draws_below_the_steady_wait(attempts, initial, factor, maximum, seed):
    fields = {"initial": initial, "factor": factor, "maximum": maximum}
    ceiling = backoff(RetryPolicy(2, jitter=False, **fields), attempts, RNG)
    assert 0.0 <= backoff(RetryPolicy(2, **fields), attempts, random.Random(seed)) <= ceiling <= maximum


@pytest.mark.parametrize("kind", sorted(ERROR_KINDS))
def test_by_default_everything_but_the_permanent_kinds_is_tried_again(kind):
    assert (decide(steady(), 1, failure(kind), RNG) is None) == (kind in PERMANENT_KINDS)


@pytest.mark.parametrize("on", [["timeout", "quota"], lambda error: error.kind in {"timeout", "quota"}])
def test_on_takes_the_place_of_the_default(on):
    tried = {kind for kind in ERROR_KINDS if decide(steady(on=on), 1, failure(kind), RNG) is not None}
    assert tried == {"timeout", "quota"}


def test_an_error_that_is_not_retryable_is_not_unless_the_user_names_its_kind():
    assert decide(steady(), 1, failure(retryable=False), RNG) is None
    assert decide(steady(on=["agent"]), 1, failure(retryable=False), RNG) is not None


def test_the_last_attempt_is_the_last():
    assert decide(steady(3), 2, failure(), RNG) is not None
    assert decide(steady(3), 3, failure(), RNG) is None


def test_the_longer_of_backoff_and_what_the_server_asked_for():
    policy = steady(initial=4.0)
    assert decide(policy, 1, failure(retry_after=9.0), RNG) == 9.0
    assert decide(policy, 1, failure(retry_after=1.0), RNG) == 4.0


@pytest.mark.parametrize(
    ("asked", "delay"), [(None, 0), (-1.0, 0), (float("nan"), 0), (float("inf"), 0), (2.5, 2.5), (1e12, MAX_SECONDS)]
)
def test_nonsense_from_the_server_is_no_delay(asked, delay):
    assert asked_delay(failure(retry_after=asked)) == delay


def test_a_users_function_is_asked_off_the_loop_and_its_verdict_travels_with_the_error():
    def judge(error):
        return error.kind == "quota"

    policy = judged_beforehand(steady(on=judge))
    assert policy.on is not judge
    assert decide(policy, 1, judged(failure("quota"), judge), RNG) is not None
    assert decide(policy, 1, judged(failure("agent"), judge), RNG) is None


@pytest.mark.parametrize("again", [True, False])
def test_time_limits_are_judged_beforehand(again):
    policy = judged_beforehand(steady(on=lambda error: again))
    assert (decide(policy, 1, failure("timeout"), RNG) is not None) == again


def test_a_broken_function_ends_the_task_and_is_named():
    error = judged(failure(), lambda error: error.no_such_field)
    assert error.message.startswith("it broke (not tried again: RetryPolicy.on raised AttributeError: ")
    assert not error.retryable


def test_policies_without_a_function_stay_as_they_are():
    policy = steady(on=["agent"])
    assert judged_beforehand(policy) is policy

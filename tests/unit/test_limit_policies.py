"""Budget and Breaker as values."""

import pytest

from ag2_parallel import Breaker, Budget, ConfigurationError, ParallelAgentRunner


@pytest.mark.parametrize("fields", [
    {}, {"max_cost": 0}, {"max_cost": -1}, {"max_cost": float("nan")}, {"max_cost": True}, {"max_tokens": 0},
    {"max_tokens": 1.5}, {"max_task_tokens": "10"}, {"max_task_cost": float("inf")},
])  # fmt: skip
def test_a_budget_that_makes_no_sense(fields):
    with pytest.raises(ConfigurationError, match="Budget"):
        Budget(**fields)


def test_all_problems_of_a_budget_at_once():
    with pytest.raises(ConfigurationError) as caught:
        Budget(max_cost=0, max_task_cost="much", max_tokens=-1, max_task_tokens=0)
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("fields", [
    {"same_failures": 0}, {"same_failures": 1.5}, {"action": "explode"}, {"probe_after": 0}, {"probe_after": None},
])  # fmt: skip
def test_a_breaker_that_makes_no_sense(fields):
    with pytest.raises(ConfigurationError, match="Breaker"):
        Breaker(**fields)


def test_good_ones():
    assert Budget(1.5).limits_cost
    assert Budget(max_task_cost=0.01).limits_cost
    assert not Budget(max_tokens=5, max_task_tokens=5).limits_cost
    assert (Breaker().same_failures, Breaker().action) == (10, "stop")


def test_options_take_nothing_else():
    with pytest.raises(ConfigurationError) as caught:
        ParallelAgentRunner(budget=5, breaker={"same_failures": 3})
    assert len(caught.value.problems) == 2
    assert "Budget(max_tokens" in str(caught.value)

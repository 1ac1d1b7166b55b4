"""Usage adds up, and an unknown price stays unknown."""

import pickle

import pytest

from ag2_parallel import ConfigurationError, RetryPolicy, Usage
from ag2_parallel.policies import as_retry_policy


def call(model, cost, **counts):
    return Usage(**{"prompt_tokens": 10, "completion_tokens": 5, "calls": 1, **counts}, cost=cost).for_model(model)


def test_counts_and_costs_add_up_by_model():
    total = Usage.total([call("a", 0.5), call("b", 0.25), call("a", 0.5)])
    assert (total.prompt_tokens, total.completion_tokens, total.total_tokens, total.calls) == (30, 15, 45, 3)
    assert total.cost == 1.25
    assert total.by_model["a"].calls == 2
    assert total.by_model["a"].cost == 1.0
    assert total.by_model["b"].total_tokens == 15


def test_one_unknown_price_makes_the_sum_unknown_never_zero():
    total = call("a", 0.5) + call("b", None)
    assert total.cost is None
    assert total.by_model["a"].cost == 0.5
    assert Usage.total([]).cost == 0


def test_plain_data():
    plain = call("a", None, cached_tokens=3).to_dict()
    assert plain["total_tokens"] == 15
    assert plain["cached_tokens"] == 3
    assert plain["cost"] is None
    assert plain["by_model"]["a"]["calls"] == 1


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": True}, "max_attempts"),
        ({"max_attempts": 2, "initial": -1}, "initial"),
        ({"max_attempts": 2, "maximum": float("inf")}, "maximum"),
        ({"max_attempts": 2, "factor": 0.5}, "factor"),
        ({"max_attempts": 2, "on": "timeout"}, "not a string"),
    ],
)
def test_retry_policies_are_checked(fields, word):
    with pytest.raises(ConfigurationError, match=word):
        RetryPolicy(**fields)


def test_a_number_is_a_policy():
    assert as_retry_policy(3) == RetryPolicy(3)
    assert RetryPolicy(2, on=["timeout"]).on == frozenset({"timeout"})


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(ConfigurationError(["one", "two"])))
    assert error.problems == ("one", "two")
    assert "2 problems" in str(error)

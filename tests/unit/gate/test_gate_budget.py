"""P6: what a run and its tasks have used, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ag2_parallel.gate.budget import NamedModel, Spending, Spent, reached, unpriced
from ag2_parallel.gate.meter import Meter
from ag2_parallel.gate.prices import fixed_price
from ag2_parallel.policies import Budget


class Told:
    def __init__(self, **limits):
        self.reached, self.refused = [], []
        self.spending = Spending(Budget(**limits), on_reached=self.reached.append, on_refused=self.refused.append)

    def refusal(self, index=0, model="m", *, priced=True):
        return self.spending.of(index).refusal(model, priced=lambda: priced)


def test_a_limit_is_reached_when_it_is_used_up():
    limits = {"tokens": ("max_tokens", 10), "cost": ("max_cost", 1.0), "whose": "the run"}
    assert reached(Spent(9, 0.99), **limits) is None
    assert reached(Spent(10, 0.0), **limits) == "the run has used 10 tokens, and its budget is max_tokens=10"
    assert reached(Spent(0, 1.25), **limits) == "the run has cost $1.25, and its budget is max_cost=1"


def test_the_run_is_told_once_and_every_further_call_refused():
    told = Told(max_tokens=10)
    told.spending.of(0).add(6, 0.0)
    assert told.refusal() is None
    told.spending.of(1).add(6, 0.0)
    told.spending.of(1).add(6, 0.0)
    assert len(told.reached) == 1
    assert told.refused == []
    assert [told.refusal(index).kind for index in (0, 1, 2)] == ["budget"] * 3
    assert len(told.refused) == 3


def test_a_tasks_budget_is_its_own():
    told = Told(max_task_tokens=10, max_task_cost=1.0)
    told.spending.of(0).add(10, 0.0)
    told.spending.of(1).add(0, 1.0)
    assert "max_task_tokens=10" in told.refusal(0).message
    assert "max_task_cost=1" in told.refusal(1).message
    assert told.refusal(2) is None
    assert told.reached == told.refused == []


def test_attempts_share_the_account_of_their_task_until_it_is_settled():
    told = Told(max_task_tokens=10, max_tokens=100)
    first = told.spending.of(0)
    assert told.spending.of(0) is first
    told.spending.forget(0)
    first.add(100, 0.0)
    assert told.reached, "what an abandoned attempt still uses counts for the run"


def test_a_price_must_be_known_only_where_costs_are_limited():
    assert Told(max_tokens=10).refusal(priced=False) is None
    refusal = Told(max_task_cost=1.0).refusal(model="house-model", priced=False)
    assert refusal.kind == "configuration"
    assert "house-model" in refusal.message
    assert "price=" in refusal.message
    assert "does not name" in unpriced(None)


def test_models_are_looked_at_beforehand():
    models = [NamedModel("house", "", priced=False), NamedModel("house", "http://b", priced=False),
              NamedModel("fine", "", priced=True), NamedModel("gpt-4o-mini", "https://api.openai.com/v1", priced=False)]  # fmt: skip
    assert Told(max_tokens=10).spending.problems(models) == []
    problems = Told(max_cost=10).spending.problems(models)
    assert len(problems) == 1
    assert '"house"' in problems[0]


def test_loading_prices_is_for_costs_alone():
    Told(max_tokens=1).spending.load_prices()
    Told(max_cost=1).spending.load_prices()


@pytest.mark.parametrize("block", [{"prompt_tokens": 3, "completion_tokens": 4}, None])
def test_tallies_charge_what_usage_says(block):
    told = Told(max_tokens=1000, max_cost=100.0)
    meter = Meter(told.spending.of(0))
    tally = meter.open("m", lambda _model, _endpoint: fixed_price((1.0, 2.0)))
    tally.unreport(5)
    tally.answer(block, lambda: 7)
    usage = meter.usage()
    assert told.spending._run.tokens == usage.total_tokens + usage.estimated_tokens == 12
    assert told.spending._run.cost == pytest.approx(usage.cost)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=60), st.integers(1, 200), st.integers(1, 8))
def test_overshoot_is_what_is_in_flight(calls, most, workers):
    """Calls are admitted while the answers so far leave room; up to `workers` of them are in flight at once."""
    told = Told(max_tokens=most)
    in_flight, used = [], 0
    for index, tokens in calls:
        if len(in_flight) == workers:
            account, size = in_flight.pop(0)
            told.spending.of(account).add(size, 0.0)
            used += size
        if told.refusal(index) is None:
            assert used < most
            in_flight.append((index, tokens))
        else:
            assert used >= most
    assert used + sum(size for _, size in in_flight) < most + 50 * workers

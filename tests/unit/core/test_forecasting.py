"""M8: what many tasks take, from what some took."""

import math
import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ag2_parallel.core.forecasting import Sampled, expanded_tail, makespan, outlook, unseen

SECONDS = st.lists(st.floats(0, 1000), min_size=1, max_size=60)
WORKERS = st.integers(1, 80)
SAMPLES = st.lists(
    st.builds(Sampled, st.floats(0, 100), st.floats(0, 1e5), st.floats(0, 10), st.tuples(st.floats(0, 5))),
    min_size=1,
    max_size=8,
)


@given(SECONDS, WORKERS)
def test_a_makespan_is_within_the_bounds_of_list_scheduling(seconds, workers):
    """R. L. Graham: at least the longest task and an even share, at most the share and the longest together."""
    least = max(*seconds, sum(seconds) / workers)
    wall = makespan(seconds, workers)
    assert least * (1 - 1e-9) <= wall <= (sum(seconds) / workers + max(seconds)) * (1 + 1e-9)


@given(SECONDS, WORKERS)
def test_more_workers_never_take_longer(seconds, workers):
    assert makespan(seconds, workers + 1) <= makespan(seconds, workers)


def test_makespans_by_hand():
    assert makespan([3, 1, 1, 1], 2) == 3
    assert makespan([1, 1, 1, 3], 2) == 4
    assert makespan([2, 2], 1, busy=5) == 9
    assert makespan([], 3) == 0


@settings(max_examples=30, deadline=None)
@given(SAMPLES, st.integers(0, 40), WORKERS, st.integers(1, 4))
def test_intervals_are_in_order_and_no_figure_is_out_of_reach(sample, left, workers, depth):
    ahead = outlook(sample, left, workers, random.Random(1), depth=depth)
    far = math.expm1(unseen(len(sample)))
    for interval, values in (
        (ahead.tokens, [task.tokens for task in sample]),
        (ahead.cost, [task.cost for task in sample]),
    ):
        assert interval.low <= interval.expected * (1 + 1e-9)
        assert interval.expected <= interval.high * (1 + 1e-9)
        assert interval.low >= left * min(values) / (1 + far) * (1 - 1e-9) - 1e-300
        assert interval.high <= left * max(values) * (1 + far) * (1 + 1e-9)
    shortest, load = min(task.seconds for task in sample), min(task.loads[0] for task in sample)
    least = max(shortest * min(depth, left) / (1 + far), shortest * left / workers / (1 + far), load * left)
    assert ahead.wall.low >= least * (1 - 1e-9)
    assert 1 <= ahead.knee <= max(1, left)


@settings(max_examples=30, deadline=None)
@given(SAMPLES, st.integers(0, 40), st.integers(1, 30))
def test_more_workers_are_never_forecast_to_take_longer(sample, left, workers):
    few = outlook(sample, left, workers, random.Random(1)).wall
    many = outlook(sample, left, workers + 1, random.Random(1)).wall
    assert many.low <= few.low
    assert many.expected <= few.expected * (1 + 1e-9)
    assert many.high <= few.high


def test_past_the_knee_nothing_is_won():
    even = [Sampled(10.0)]
    assert outlook(even, 100, 4, random.Random(1)).knee == 100
    assert outlook(even, 100, 4, random.Random(1)).wall.expected == 250
    held = [Sampled(10.0, loads=(1.0,))]
    ahead = outlook(held, 100, 64, random.Random(1))
    assert (ahead.wall.expected, ahead.knee) == (100, 10)
    mixed = [Sampled(1.0)] * 9 + [Sampled(50.0)]
    assert outlook(mixed, 50, 4, random.Random(1)).knee < 50


def test_a_chain_of_tasks_takes_its_length():
    assert outlook([Sampled(2.0)], 30, 30, random.Random(1), depth=10).wall.expected == 20


def test_a_price_that_is_not_known_is_no_zero():
    assert outlook([Sampled(1.0), Sampled(1.0, cost=None)], 10, 2, random.Random(1)).cost is None


def test_the_same_seed_says_the_same():
    sample = [Sampled(random.Random(n).expovariate(1)) for n in range(6)]
    assert outlook(sample, 50, 4, random.Random(3)) == outlook(sample, 50, 4, random.Random(3))


@pytest.mark.parametrize("workers", [1, 16, 500])
def test_many_tasks_are_counted_and_not_simulated_one_by_one(workers):
    draw = random.Random(5)
    sample = [Sampled(draw.expovariate(1), tokens=draw.randrange(100)) for _ in range(30)]
    ahead = outlook(sample, 1_000_000, workers, random.Random(1))
    share = 1_000_000 * fmean(task.seconds for task in sample) / workers
    assert ahead.wall.low <= share <= ahead.wall.high
    assert ahead.wall.expected == pytest.approx(share, rel=0.1)


def test_nine_intervals_of_ten_hold_the_truth():
    """Of runs whose tasks are drawn from one distribution, a few more or less than 9 of 10."""
    draw = random.Random(11)
    held = 0
    for _ in range(60):
        tasks = [draw.gammavariate(4, 1) for _ in range(100)]
        ahead = outlook([Sampled(seconds) for seconds in tasks[:8]], 92, 4, random.Random(draw.random()))
        held += ahead.wall.low <= makespan(tasks[8:], 4) <= ahead.wall.high
    assert 48 <= held <= 60


def test_small_samples_get_wider_intervals():
    assert expanded_tail(1) == 0
    assert expanded_tail(3) < expanded_tail(5) < expanded_tail(50) < 0.05
    assert expanded_tail(1000) == pytest.approx(0.05, abs=0.001)


@pytest.mark.parametrize(("count", "factor"), [(1, 3.0), (4, 1.3), (5, 1.25), (100, 1.01)])
def test_a_sample_that_shows_no_spread_is_not_taken_at_its_word(count, factor):
    """One task says little of a hundred others, four or five alike ones more, a hundred nearly all."""
    ahead = outlook([Sampled(4.0, tokens=10, cost=0.1)] * count, 100, 10, random.Random(1))
    for interval, expected in ((ahead.wall, 40), (ahead.tokens, 1000), (ahead.cost, 10)):
        assert interval.expected == pytest.approx(expected)
        assert interval.low <= expected / factor
        assert interval.high >= expected * factor


def test_what_is_not_there_or_free_takes_nothing_for_sure():
    ahead = outlook([Sampled(4.0, tokens=10)], 0, 10, random.Random(1))
    assert (ahead.wall.low, ahead.wall.high, ahead.tokens.high) == (0, 0, 0)
    assert outlook([Sampled(4.0, tokens=10)], 5, 10, random.Random(1)).cost.high == 0


def test_no_interval_begins_below_what_limits_allow():
    ahead = outlook([Sampled(1.0, loads=(0.5,))] * 2, 100, 10, random.Random(1))
    assert ahead.wall.low == ahead.wall.expected == 50 < ahead.wall.high


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_nine_intervals_of_ten_hold_the_truth_of_small_samples_too(count):
    draw = random.Random(count)
    held = 0
    for _ in range(100):
        tasks = [draw.lognormvariate(0, 0.6) for _ in range(100)]
        ahead = outlook([Sampled(seconds) for seconds in tasks[:count]], 100 - count, 4, random.Random(draw.random()))
        held += ahead.wall.low <= makespan(tasks[count:], 4) <= ahead.wall.high
    assert held >= 80

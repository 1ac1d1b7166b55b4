"""Spending evenly, pausing, pacing, and finding how many calls an endpoint takes."""

import random
from heapq import heappop, heappush

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ag2_parallel.gate.adaptive import Window
from ag2_parallel.gate.limits import NOTHING
from ag2_parallel.gate.pacing import EndpointPace
from ag2_parallel.gate.rate import TOLERANCE, Pacer

rates = st.floats(0.05, 500)
costs = st.floats(0.01, 50)


@given(rate=rates, calls=st.lists(st.tuples(costs, st.floats(0, 5)), min_size=1, max_size=60))
def test_a_pacer_never_lets_more_go_than_the_rate_and_one_call(rate, calls):
    pacer, now, taken = Pacer(rate), 0.0, []
    for cost, pause in calls:
        now = max(now + pause, pacer.ready_at(cost))
        pacer.take(cost, now)
        taken.append((now, cost))
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            span = taken[last][0] - taken[first][0]
            total = sum(cost for _, cost in taken[first : last + 1])
            largest = max(cost for _, cost in taken[first : last + 1])
            assert total <= rate * (span + TOLERANCE) + largest + 1e-6 * total


@pytest.mark.parametrize("rate", [0.5, 1, 7, 10, 64, 900])
def test_a_pacer_is_used_to_the_full_and_bursts_a_fifth_of_a_second_at_most(rate):
    pacer, now, times = Pacer(rate, unit=1.0), 0.0, []
    while now < 100:
        now = max(now, pacer.ready_at(1.0)) + 0.0005  # timers are late
        pacer.take(1.0, now)
        times.append(now)
    assert 0.98 * rate * 100 <= len(times) <= rate * (100 + TOLERANCE) + 2.01
    at_once = Pacer(rate, unit=1.0)
    burst = 0
    while at_once.ready_at(1.0) <= 0.0:
        at_once.take(1.0, 0.0)
        burst += 1
    assert burst <= max(1, 0.2 * rate)


def drive(pace, limit, per, tasks, *, hint, latency=0.01):
    """A sliding-window server before so many tasks; returns arrival times and how many were refused."""
    now, let, queue, arrivals, refused = 0.0, [], [0.0] * tasks, [], 0
    pending = []
    while queue or pending:
        queue.sort()
        at = max(queue[0], pace.ready_at(NOTHING, max(now, queue[0])), now) if queue else float("inf")
        if pending and pending[0][0] <= at:
            now, sent, ok = pending.pop(0)
            if ok:
                pace.went_through(sent, now)
            else:
                wait = None if hint is None else hint
                pace.refused(sent, now, wait, 0.1)
                queue.append(now + (hint or 0.1))
            pace.done(NOTHING, None, now)
            continue
        now = at
        queue.pop(0)
        if pace.ready_at(NOTHING, now) > now:
            queue.append(now)
            continue
        pace.take(NOTHING, now)
        arrivals.append(now)
        let = [t for t in let if now - t < per]
        ok = len(let) < limit
        if ok:
            let.append(now)
        else:
            refused += 1
        pending.append((now + latency, now, ok))
    return arrivals, refused


@pytest.mark.parametrize("hint", [None, 2.0])
@pytest.mark.parametrize("limit", [5, 20, 100])
def test_an_endpoint_that_refused_is_paced_from_what_it_let_through(limit, hint):
    pace = EndpointPace("e")
    arrivals, refused = drive(pace, limit, 2.0, 5 * limit, hint=hint)
    assert refused <= max(0, 20 - limit) + 0.6 * 5 * limit  # twenty go before anything is known
    assert pace.rate < 2 * limit / 2.0
    assert arrivals[-1] < 5 * 2.0 * 4, "and it is not starved"


def test_the_pause_holds_for_everybody_and_one_episode_counts_once():
    pace = EndpointPace("e")
    for _ in range(3):
        pace.take(NOTHING, 1.0)
    assert pace.refused(1.0, 1.1, 5.0, 0.1)
    assert not pace.refused(1.0, 1.2, 5.0, 0.1)
    assert pace.ready_at(NOTHING, 1.3) == pytest.approx(6.2)
    assert pace.ready_at(NOTHING, 6.3) <= 6.3
    pace.take(NOTHING, 6.3)
    assert pace.ready_at(NOTHING, 6.3) > 6.4, "no two wake up together"


def test_trouble_that_goes_on_without_a_hint_pauses_twice_as_long():
    pace, now, pauses = EndpointPace("e"), 0.0, []
    for _ in range(5):
        pace.take(NOTHING, now)
        pace.refused(now, now + 0.01, None, 0.1)
        pauses.append(pace.resumes_at - now - 0.01)
        now = pace.resumes_at
        assert pace.ready_at(NOTHING, now) <= now + 1e-9
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6])


def test_one_odd_refusal_does_not_slow_an_endpoint_for_long():
    pace, now = EndpointPace("e"), 0.0
    pace.take(NOTHING, now)
    pace.refused(now, 0.1, 30.0, 0.1)
    sent = 0
    now = pace.resumes_at
    start = now
    while sent < 500:
        now = max(now, pace.ready_at(NOTHING, now))
        if pace.ready_at(NOTHING, now) <= now:
            pace.take(NOTHING, now)
            pace.went_through(now, now)
            sent += 1
    assert now - start < 120


def times_of_a_thousand(pace, start=0.0):
    """When each of them goes, in seconds from the first."""
    now, times = start, []
    while len(times) < 1000:
        now = max(now, pace.ready_at(NOTHING, now))
        if pace.ready_at(NOTHING, now) <= now:
            pace.take(NOTHING, now)
            times.append(now - start)
    return times


def test_a_cold_endpoint_is_not_stormed_and_a_warm_one_is_not_held_up():
    times = times_of_a_thousand(EndpointPace("e"))
    assert sum(t < 0.09 for t in times) <= 20
    assert sum(t < 0.19 for t in times) <= 40
    assert times[-1] < 0.7


@pytest.mark.parametrize("seconds", [1.0, 20.0])
def test_a_model_that_takes_its_time_holds_nobody_up(seconds):
    pace = EndpointPace("e")
    for _ in range(20):
        pace.take(NOTHING, 0.0)
    for _ in range(20):
        pace.went_through(0.0, seconds)
        pace.done(NOTHING, None, seconds)
    times = times_of_a_thousand(pace, start=seconds)
    assert sum(t < 0.09 for t in times) <= 40
    assert times[-1] < 0.7


def test_answers_open_a_cold_endpoint_and_a_loop_that_is_late_does_not():
    quick, late = EndpointPace("e"), EndpointPace("e")
    for pace in (quick, late):
        for _ in range(20):
            pace.take(NOTHING, 0.0)
        assert pace.ready_at(NOTHING, 0.01) > 0.01
    for _ in range(20):
        quick.went_through(0.0, 0.02)
    assert quick.ready_at(NOTHING, 0.02) <= 0.02
    assert opens_after(late, 5.0, between=5.0) > 50, "refusals may lie there unread"
    assert opens_after(late, 1000.0, between=0.005) < 0.15


@pytest.mark.parametrize("between", [0.001, 0.005])
def test_silence_proves_as_much_as_was_looked_for_answers(between):
    attentive, busy = EndpointPace("e"), EndpointPace("e")
    for pace in (attentive, busy):
        for _ in range(20):
            pace.take(NOTHING, 0.0)
    assert opens_after(attentive, 0.0, between) < 0.15
    assert opens_after(busy, 0.0, between + 0.02) > 0.3, "each turn of the loop takes so long"


def opens_after(pace, start, between):
    """Seconds until an endpoint lets one more through, which is asked so often."""
    now = start
    while pace.ready_at(NOTHING, now) > now:
        now += between
    return now - start


def drive_at_random(share, *, hint, tasks=1000, workers=64, latency=0.05, seed=1):
    """A server that refuses a share of all calls whatever their number; returns seconds and how many were refused."""
    draw, pace, now, refused = random.Random(seed), EndpointPace("e"), 0.0, 0
    waiting, later, done, left = workers, [], 0, tasks - workers
    while done < tasks:
        at = pace.ready_at(NOTHING, now)
        if waiting and at <= now:
            waiting -= 1
            pace.take(NOTHING, now)
            heappush(later, (now + latency * draw.uniform(0.5, 1.5), now, draw.random() >= share))
            continue
        now = max(now, min([each[0] for each in later[:1]] + [at] * bool(waiting)))
        while later and later[0][0] <= now:
            _, sent, ok = heappop(later)
            if sent is None:
                waiting += 1
                continue
            if ok:
                pace.went_through(sent, now)
                done += 1
                waiting += left > 0
                left -= 1
            else:
                refused += 1
                pace.refused(sent, now, hint, 0.5)
                heappush(later, (now + (hint or 0.1), None, False))
            pace.done(NOTHING, None, now)
    return now, refused


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("hint", [None, 0.05, 1.0])
@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_refusals_without_a_limit_do_not_slow_an_endpoint_down(share, hint, seed):
    seconds, refused = drive_at_random(share, hint=hint, seed=seed)
    assert refused < 2 * share * 1000
    assert seconds < 50


@pytest.mark.parametrize(("share", "seconds"), [(0.2, 60), (0.3, 120)])
@pytest.mark.parametrize("hint", [None, 0.05, 1.0])
def test_a_share_that_is_refused_at_any_pace_does_not_bring_an_endpoint_down(share, seconds, hint):
    took = sorted(drive_at_random(share, hint=hint, seed=seed)[0] for seed in range(21))
    assert took[10] < seconds, "as a rule"
    assert took[-1] < 10 * seconds


def rate_after(calls, refuses):
    """The pace of an endpoint that took one call of twenty, after so many more; `refuses(number, rate)` says which are refused."""
    pace, now = EndpointPace("e"), 0.0
    for _ in range(20):
        pace.take(NOTHING, now)
    pace.went_through(now, 0.1)
    for _ in range(19):
        pace.refused(now, 0.1, 2.0, 0.1)
    for number in range(calls):
        now = max(now, pace.resumes_at, pace.ready_at(NOTHING, max(now, pace.resumes_at)))
        pace.ready_at(NOTHING, now)
        pace.take(NOTHING, now)
        if refuses(number, pace.rate):
            pace.refused(now, now + 1e-6, None, 0.1)
        else:
            pace.went_through(now, now + 1e-6)
        pace.done(NOTHING, None, now)
        now += 1e-5
    return pace.rate


def test_a_pace_doubles_for_refusals_it_has_nothing_to_do_with_and_not_for_a_limit():
    draw = random.Random(1)
    assert rate_after(400, lambda _number, _rate: draw.random() < 0.25) > 100
    assert rate_after(400, lambda number, rate: rate > 5 and number % 2) < 10


@pytest.mark.parametrize("long", [1.0, 60.0])
def test_a_pause_ends_when_calls_sent_later_are_answered(long):
    pace = EndpointPace("e")
    for number in range(15):
        pace.take(NOTHING, number / 1000)
    assert pace.refused(0.002, 0.02, long, 0.1)
    for number in range(3):
        pace.went_through(number / 1000, 0.03)
    assert pace.ready_at(NOTHING, 0.04) == pytest.approx(0.02 + long), "these were sent before"
    assert pace.not_before(NOTHING, 0, 0.04) < 0.04, "and the pause may end sooner than that"
    for number in range(3, 7):
        pace.went_through(number / 1000, 0.05)
    assert pace.ready_at(NOTHING, 0.06) <= 0.06
    assert pace.rate is None


def test_a_pause_stays_where_calls_sent_later_are_refused_too():
    pace = EndpointPace("e")
    for number in range(15):
        pace.take(NOTHING, number / 1000)
    pace.refused(0.002, 0.02, 1.0, 0.1)
    for number in range(3, 15):
        answer = pace.went_through if number % 3 else lambda sent, now: pace.refused(sent, now, 1.0, 0.1)
        answer(number / 1000, 0.05)
    assert pace.ready_at(NOTHING, 0.06) >= 1.02
    assert pace.not_before(NOTHING, 0, 0.06) >= 1.02


def round_trip(window, capacity):
    """Everything that may go goes at once; what exceeds the capacity is refused. Returns how many went through."""
    round_trip.now += 1.0
    sent = 0
    while window.ready_at(NOTHING, round_trip.now) <= round_trip.now:
        window.take(NOTHING, round_trip.now)
        sent += 1
    for number in range(sent):
        window.done(NOTHING, None, round_trip.now)
        if number < capacity:
            window.went_through()
        else:
            window.refused(round_trip.now, round_trip.now + 0.5)
    return min(sent, capacity)


@pytest.mark.parametrize("capacity", [1, 4, 16, 64, 300])
def test_the_window_finds_what_a_server_takes(capacity):
    round_trip.now = 0.0
    window = Window("w")
    rounds = [round_trip(window, capacity) for _ in range(60)]
    assert sum(rounds[30:]) >= 0.9 * capacity * 30


def test_an_episode_lowers_the_window_once_and_never_below_half():
    window = Window("w")
    window.size = 100.0
    for _ in range(100):
        window.take(NOTHING, 1.0)
    for _ in range(80):
        window.refused(1.0, 2.0)
    assert window.size == 50
    window.refused(3.0, 4.0)
    assert 25 <= window.size <= 0.9 * 50


def test_a_window_that_is_not_used_does_not_grow():
    window = Window("w")
    for _ in range(50):
        window.take(NOTHING, 0.0)
        window.done(NOTHING, None, 0.0)
        window.went_through()
    assert window.size == 4

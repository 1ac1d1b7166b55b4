"""Limits that a provider's headers announce, and guesses at tokens."""

from datetime import UTC, datetime

import pytest

from ag2_parallel.gate.admission import Admission, Route
from ag2_parallel.gate.announced import Announced
from ag2_parallel.gate.estimate import AnswerLengths
from ag2_parallel.gate.limits import Need
from ag2_parallel.gate.rate import NOT_KNOWN

TODAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def test_one_call_goes_ahead_until_something_is_known():
    limit = Announced("a")
    assert limit.ready_at(Need(), 0.0) <= 0.0
    limit.take(Need(), 0.0)
    assert limit.ready_at(Need(), 0.0) == NOT_KNOWN
    limit.heard({}, 1.0, TODAY)
    assert limit.ready_at(Need(), 1.0) <= 1.0, "a server that announces nothing limits nothing"


def test_a_cut_first_call_lets_the_next_one_find_out():
    limit = Announced("a")
    limit.take(Need(), 0.0)
    limit.undo(Need())
    assert limit.ready_at(Need(), 0.0) <= 0.0


@pytest.mark.parametrize("form", ["x-ratelimit-limit-{}", "anthropic-ratelimit-{}-limit"])
def test_announced_limits_are_spent_evenly(form):
    limit = Announced("a")
    limit.take(Need(), 0.0)
    limit.heard({form.format("requests"): "60", form.format("tokens"): "6000"}, 0.0, TODAY)
    limit.done(Need(), None, 0.0)
    assert limit.ready_at(Need(), 0.0) == pytest.approx(0.9)
    limit.take(Need(500, 100), 1.0)
    assert limit.ready_at(Need(500, 100), 1.0) == pytest.approx(6.0)
    limit.done(Need(500, 100), 200, 1.0)
    assert limit.ready_at(Need(500, 100), 1.0) == pytest.approx(3.0)
    assert limit.not_before(Need(), 0, 1.0) < 1.0


def test_calls_that_went_before_a_limit_was_known_are_booked_once_it_is():
    limit, need = Announced("a"), Need(5100, 100)
    limit.take(need, 0.0)
    limit.heard({}, 0.0, TODAY)
    limit.take(need, 0.0)
    limit.heard({"x-ratelimit-limit-requests": "60", "x-ratelimit-limit-tokens": "6000"}, 0.0, TODAY)
    assert limit.requests.ready_at(need, 0.0) == pytest.approx(1.9)
    for _ in range(2):
        limit.done(need, 300, 0.0)
    assert limit.tokens.ready_at(need, 0.0) == pytest.approx(6.0), "what was used counts, and no more"


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("12", 12), ("1.5", 1.5), ("17ms", 0.017), ("6m0s", 360), ("1h2m3s", 3723), ("2d", 86_400),
        ("2026-03-01T12:00:30Z", 30), ("nonsense", 0), ("", 0), ("nan", 0), ("-3", 0), ("2026-03-01T12:00:30", 0),
        (".5s", 0.5), ("1.2.3s", 0), (".s", 0), ("1..ms", 0),
    ],
)  # fmt: skip
def test_where_nothing_remains_calls_wait_for_the_reset(reset, seconds):
    limit = Announced("a")
    headers = {
        "x-ratelimit-limit-requests": "60000", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset,
    }  # fmt: skip
    limit.heard(headers, 100.0, TODAY)
    assert limit.ready_at(Need(), 100.0) == pytest.approx(100.0 + seconds, abs=0.2)


def test_where_nothing_remains_of_an_unnamed_limit_calls_wait_too():
    limit = Announced("a")
    limit.heard({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "3s"}, 100.0, TODAY)
    assert limit.ready_at(Need(), 100.0) == 103.0


def test_who_waits_for_the_first_answer_is_refused_once_that_names_a_limit_for_which_there_is_no_time():
    limit = Announced("a")
    admission, route = Admission(), Route((limit,))
    first = admission.ask(route, Need(), None, 100.0)
    hasty, patient = admission.ask(route, Need(), 105.0, 100.0), admission.ask(route, Need(), None, 100.0)
    limit.heard({"x-ratelimit-limit-requests": "1"}, 100.5, TODAY)
    admission.done(first, None, 100.5)
    assert admission.advance(100.5) == [hasty]
    assert (hasty.state, patient.state) == ("refused", "waiting")


@pytest.mark.parametrize("value", ["0", "-1", "lots", "", "inf", "nan"])
def test_a_limit_that_makes_no_sense_is_none(value):
    limit = Announced("a")
    limit.heard({"x-ratelimit-limit-requests": value}, 0.0, TODAY)
    assert limit.requests is None


def test_guesses_follow_the_answers():
    lengths = AnswerLengths()
    assert lengths.guess("e", "m", None) == 256
    assert lengths.guess("e", "m", 50) == 50
    for _ in range(100):
        lengths.learn("e", "m", 400)
    assert lengths.guess("e", "m", None) == 400
    assert lengths.guess("e", "m", 50) == 50
    lengths.learn("e", "m", 0)
    assert lengths.guess("e", "m", 5000) == 360
    assert lengths.guess("e", "other", 7) == 7

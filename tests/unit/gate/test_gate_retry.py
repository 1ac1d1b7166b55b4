"""Pure decisions about another try."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ag2_parallel.gate.retry import LONGEST_WAIT, Again, GiveUp, Outcome, answered, decide, wait
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.retry_after import LONGEST_HINT, retry_after

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BUSY = Outcome(kind="rate_limit", transient=True, reason="HTTP 429", status=429)


FIVE = RetryPolicy(5)


def judge(outcome=BUSY, policy=FIVE, tries=1, last_entry=True, remaining=None, draw=lambda: 1.0):
    return decide(outcome, policy=policy, tries=tries, last_entry=last_entry, remaining=remaining, draw=draw)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": " 3 "}, 3),
        ({"retry-after": "-4"}, 0),
        ({"retry-after": "86400"}, 86400),
        ({"retry-after": "1e300"}, LONGEST_HINT),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:07 GMT"}, 7),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Thu, 01 Jan 2026 13:00:07 +0100"}, 7),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:07 -0000"}, 7),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST_HINT),
        ({"retry-after": "Thu, 01 Jan 2026 15:00:07 GMT", "date": "Thu, 01 Jan 2026 15:00:00 GMT"}, 7),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:07 GMT", "date": "soon"}, 7),
        ({"retry-after": "Thu, 99 Foo 2026 12:00:07 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after(headers, seconds):
    assert retry_after(headers, NOW) == seconds


@given(st.text(), st.text())
def test_any_text_is_a_sane_wait_or_none(seconds, milliseconds):
    found = retry_after({"retry-after": seconds, "retry-after-ms": milliseconds}, NOW)
    assert found is None or 0 <= found <= LONGEST_HINT


def test_an_answers_own_hint_counts_where_the_headers_have_none():
    body = b'{"error": {"message": "Please retry after 26 seconds."}}'
    assert answered(429, body=body, should_retry=None, hint=None).hint == 26
    assert answered(429, body=body, should_retry=None, hint=3).hint == 3
    assert answered(429, body=b"", should_retry=None, hint=None) == Outcome(
        kind="rate_limit", transient=True, reason="HTTP 429", status=429
    )


def test_the_number_of_tries_is_kept():
    assert [type(judge(tries=tries)) for tries in (1, 4, 5, 6)] == [Again, Again, GiveUp, GiveUp]
    assert [type(judge(tries=tries, last_entry=False)) for tries in (1, 2)] == [Again, GiveUp]
    assert judge(policy=RetryPolicy(1)) == GiveUp()
    assert judge(policy=RetryPolicy(1), last_entry=False) == GiveUp()


def test_what_is_permanent_is_not_tried_again():
    assert judge(Outcome(kind="quota", transient=False, reason="HTTP 429")) == GiveUp()


def test_a_policy_for_named_kinds_is_for_those_alone():
    assert judge(policy=RetryPolicy(5, on=["timeout"])) == GiveUp()
    assert judge(policy=RetryPolicy(5, on=["rate_limit"])) == Again(0.1)


def test_waits_grow_and_are_capped_and_jitter_draws_below():
    policy = RetryPolicy(9, initial=1, factor=3, maximum=20, jitter=False)
    assert [wait(policy, tries=tries, hint=None, draw=lambda: 0.5) for tries in (1, 2, 3, 4, 900)] == [1, 3, 9, 20, 20]
    jittered = RetryPolicy(9, initial=1, factor=3, maximum=20)
    assert wait(jittered, tries=2, hint=None, draw=lambda: 0.5) == 1.5


def test_a_hint_is_never_undercut_and_wake_ups_are_spread():
    assert wait(RetryPolicy(9, initial=1), tries=1, hint=2, draw=lambda: 0.25) == 2.25
    assert wait(RetryPolicy(9, initial=1, jitter=False), tries=1, hint=2, draw=lambda: 0) == 2
    assert wait(RetryPolicy(9, initial=4, jitter=False), tries=1, hint=2, draw=lambda: 0) == 4


def test_a_wait_that_does_not_end_before_the_limit_is_not_begun():
    asked = Outcome(kind="rate_limit", transient=True, reason="HTTP 429", hint=86400)
    assert judge(asked, remaining=58.4) == GiveUp(
        "not tried again: the server asks to wait 86400 s and the task has 58 s left"
    )
    assert judge(remaining=0.1) == GiveUp("not tried again: the next try would be in 0.1 s and the task has 0 s left")
    assert judge(remaining=-3).reason.endswith("has 0 s left")
    assert judge(remaining=0.2) == Again(0.1)


def test_without_a_limit_of_the_tasks_own_a_hint_is_followed_within_reason():
    patient = Outcome(kind="rate_limit", transient=True, reason="HTTP 429", hint=LONGEST_WAIT)
    assert judge(patient, draw=lambda: 0) == Again(LONGEST_WAIT)
    endless = Outcome(kind="rate_limit", transient=True, reason="HTTP 429", hint=LONGEST_WAIT + 1)
    assert "at most 3600 s are waited for" in judge(endless).reason

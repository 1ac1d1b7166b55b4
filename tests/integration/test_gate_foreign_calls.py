"""Calls that other clients send: counted, tried again, refused, never cut in flight."""

import threading
import time
from types import SimpleNamespace

import pytest
from gate_harness import FAST, InThread, harness

from ag2_parallel import RateLimit
from ag2_parallel.errors import ConfigurationError, TaskStopped
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.gate.turn import NotAdmittedError
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.redaction import Redactor

USED = {"prompt_tokens": 7, "completion_tokens": 3}


class StatusError(Exception):
    def __init__(self, status, **headers):
        super().__init__(f"status {status}")
        self.status_code = status
        self.response = SimpleNamespace(status_code=status, headers=headers)


@pytest.fixture
def engine():
    with harness() as made:
        yield made


def call(attempt, work, usage=USED, **terms):
    terms = {"model": "m", "endpoint": "ollama", "price": (1.0, 2.0), "estimate": 5} | terms
    return attempt.foreign_call(
        work, usage=lambda _answer: usage, failed=lambda error: task_error(error, Redactor()), **terms
    )


def failing(*errors, then="answer"):
    left = list(errors)

    def work():
        if left:
            raise left.pop(0)
        return then

    return work


def test_an_answered_call_is_counted_priced_and_told_of(engine):
    attempt = engine.attempt()
    assert call(attempt, lambda: "answer") == "answer"
    usage = attempt.usage()
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.unreported_calls) == (1, 7, 3, 0)
    assert usage.cost == pytest.approx(0.013)
    assert usage.by_model["m"].total_tokens == 10
    kinds = ["ModelCallStarted", "ModelCallFinished"]
    assert [event.type for event in attempt.notes.events] == kinds
    finished = attempt.notes.events[-1]
    assert (finished.endpoint, finished.model, finished.status, finished.usage.total_tokens) == (
        "ollama",
        "m",
        "200",
        10,
    )
    assert attempt.notes.signs == 2


def test_the_work_runs_on_the_callers_thread(engine):
    assert call(engine.attempt(), threading.get_ident) == threading.get_ident()


def test_an_answer_without_usage_is_estimated(engine):
    attempt = engine.attempt()
    call(attempt, lambda: "answer", usage=None)
    usage = attempt.usage()
    assert (usage.calls, usage.total_tokens, usage.unreported_calls, usage.estimated_tokens) == (1, 0, 1, 5)


@pytest.mark.parametrize(
    "error", [StatusError(429), StatusError(503), ConnectionResetError("gone"), TimeoutError("late")]
)
def test_what_can_go_away_is_tried_again(engine, error):
    attempt = engine.attempt()
    assert call(attempt, failing(error, error)) == "answer"
    assert attempt.usage().retried_calls == 2
    assert [event.try_number for event in attempt.notes.named("ModelCallStarted")] == [1, 2, 3]
    assert len(attempt.notes.named("ModelCallRetrying")) == 2
    waits = attempt.notes.waits
    assert waits.count(True) == waits.count(False) >= 2
    assert 0 < attempt.waited() < 1


@pytest.mark.parametrize("error", [StatusError(401), StatusError(404), StatusError(402), ValueError("a bug")])
def test_what_cannot_go_away_is_raised_at_once(engine, error):
    attempt = engine.attempt()
    with pytest.raises(type(error)) as raised:
        call(attempt, failing(error))
    assert raised.value is error
    assert len(attempt.notes.named("ModelCallStarted")) == 1
    assert (attempt.usage().calls, attempt.usage().retried_calls, attempt.usage().cost) == (0, 0, 0)


def test_the_number_of_tries_is_the_policys(engine):
    attempt = engine.attempt(RetryPolicy(3, initial=0.001))
    with pytest.raises(StatusError):
        call(attempt, failing(*[StatusError(500)] * 9))
    assert len(attempt.notes.named("ModelCallStarted")) == 3
    assert attempt.notes.named("ModelCallFinished")[0].status == "HTTP 500"


def test_a_policys_function_decides(engine):
    asked = []

    def judge(error):
        asked.append(error.kind)
        return False

    with pytest.raises(StatusError):
        call(engine.attempt(RetryPolicy(3, on=judge)), failing(StatusError(503)))
    assert asked == ["provider"]


def test_a_wait_that_does_not_fit_is_not_begun_and_the_error_says_so(engine):
    attempt = engine.attempt(FAST, remaining=lambda: 2.0)
    with pytest.raises(StatusError) as raised:
        call(attempt, failing(StatusError(429, **{"retry-after": "60"})))
    assert raised.value.__notes__ == ["not tried again: the server asks to wait 60 s and the task has 2 s left"]


def test_a_cut_ends_a_wait_between_two_tries(engine):
    attempt = engine.attempt(RetryPolicy(3, initial=30, jitter=False))
    calling = InThread(call, attempt, failing(StatusError(503)))
    assert attempt.notes.waits_now.wait(10)
    engine.cut(attempt, "idle")
    error = calling.join().error
    assert isinstance(error, TaskStopped)
    assert error.reason == "idle"
    assert attempt.was_cut


def test_a_cut_in_flight_counts_the_call_and_stops_it_when_it_comes_back(engine):
    attempt = engine.attempt()
    begun, release = threading.Event(), threading.Event()

    def work():
        begun.set()
        release.wait(10)
        return "late"

    calling = InThread(call, attempt, work)
    assert begun.wait(10)
    engine.cut(attempt)
    usage = attempt.usage()
    assert (usage.unreported_calls, usage.estimated_tokens) == (1, 5)
    assert attempt.notes.events[-1].status == "cut"
    assert not attempt.was_cut, "its thread is still at it"
    release.set()
    assert isinstance(calling.join().error, TaskStopped)
    assert attempt.usage() == usage


def test_no_call_starts_after_a_cut_nor_once_the_engine_has_gone(engine):
    attempt = engine.attempt()
    engine.cut(attempt)
    with pytest.raises(TaskStopped):
        call(attempt, lambda: pytest.fail("was called"))
    other = engine.attempt()
    engine.close_gate()
    with pytest.raises(ConfigurationError, match="its run are over"):
        call(other, lambda: pytest.fail("was called"))


def test_a_checkpoint_stands_before_each_try(engine):
    def check_call():
        raise TaskStopped("deadline")

    with pytest.raises(TaskStopped):
        call(engine.attempt(check_call=check_call), lambda: pytest.fail("was called"))


def test_an_answer_that_was_filtered_is_noted(engine):
    attempt = engine.attempt()
    call(attempt, lambda: {"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]})
    assert attempt.filtered
    call(attempt, lambda: "answer")
    assert not attempt.filtered


def test_limits_hold_for_calls_of_other_clients_too(engine):
    limits = CallLimits((RateLimit(concurrent=1, endpoint="ollama"), RateLimit(requests=50, per=1)))
    busy, peak, lock = [0], [0], threading.Lock()

    def work():
        with lock:
            busy[0] += 1
            peak[0] = max(peak[0], busy[0])
        time.sleep(0.02)
        with lock:
            busy[0] -= 1
        return "answer"

    calls = [InThread(call, engine.attempt(limits=limits), work) for _ in range(5)]
    assert [each.join().value for each in calls] == ["answer"] * 5
    assert peak == [1]


def test_a_call_of_another_client_that_cannot_go_in_time_fails_at_once(engine):
    limits = CallLimits((RateLimit(requests=1, per=60),))
    attempt = engine.attempt(limits=limits, remaining=lambda: 5.0)
    assert call(attempt, lambda: "answer") == "answer"
    with pytest.raises(NotAdmittedError, match="1 requests in 60 s"):
        call(attempt, lambda: "answer")


def test_a_cut_wait_of_another_client_gives_its_place_back(engine):
    limits = CallLimits((RateLimit(concurrent=1),))
    release = threading.Event()
    first = InThread(call, engine.attempt(limits=limits), lambda: release.wait(10))
    cut, last = engine.attempt(limits=limits), engine.attempt(limits=limits)
    second = InThread(call, cut, lambda: "never")
    assert cut.notes.waits_now.wait(5)
    third = InThread(call, last, lambda: "answer")
    engine.cut(cut)
    assert isinstance(second.join().error, TaskStopped)
    release.set()
    assert first.join().value
    assert third.join().value == "answer"

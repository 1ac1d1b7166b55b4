"""P20: the breaker by itself, a function of results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ag2_parallel.core.breaker import LONGEST_PAUSE, Cause, Circuit, State, cause_of, normalised
from ag2_parallel.policies import Breaker
from ag2_parallel.results import TaskError

A = Cause("authentication", 401, "")
B = Cause("connection", None, "127.0.0.1:80")


def fail(circuit, count, cause=A):
    return [circuit.failed(index, cause) for index in range(count)]


class TestCounting:
    def test_without_a_policy_nothing_trips(self):
        circuit = Circuit(None)
        assert not any(fail(circuit, 1000))
        assert circuit.lets_start

    def test_the_same_cause_so_often_stops(self):
        circuit = Circuit(Breaker(3))
        first, second, third = fail(circuit, 3)
        assert first is second is None
        assert (third.cause, third.failures, third.pause) == (A, 3, None)
        assert not circuit.lets_start

    def test_a_success_starts_the_count_anew(self):
        circuit = Circuit(Breaker(3))
        fail(circuit, 2)
        circuit.succeeded(7)
        assert fail(circuit, 2) == [None, None]
        assert circuit.lets_start

    def test_another_cause_starts_the_count_anew(self):
        circuit = Circuit(Breaker(3))
        assert not any(circuit.failed(n, cause) for n, cause in enumerate([A, A, B, B, A, A, B]))

    @given(st.lists(st.sampled_from([A, B, None]), max_size=60), st.integers(1, 6))
    def test_it_trips_exactly_at_the_first_row_of_one_cause(self, outcomes, most):
        circuit = Circuit(Breaker(most))
        row = []
        for index, cause in enumerate(outcomes):
            if cause is None:
                circuit.succeeded(index)
                row = []
                continue
            row = [*row, cause] if row and row[-1] == cause else [cause]
            trip = circuit.failed(index, cause)
            assert (trip is not None) == (len(row) == most)
            if trip is not None:
                return
            assert circuit.lets_start


class TestProbes:
    def opened(self, **options):
        circuit = Circuit(Breaker(**{"same_failures": 2, "action": "pause", "probe_after": 5.0, **options}))
        fail(circuit, 2)
        return circuit

    def test_one_attempt_is_let_through(self):
        circuit = self.opened()
        assert not circuit.lets_start
        circuit.probe_due()
        assert circuit.lets_start
        circuit.started(9)
        assert not circuit.lets_start
        assert circuit.succeeded(8) is False, "another task, started before, proves nothing"
        assert not circuit.lets_start
        assert circuit.succeeded(9) is True
        assert circuit.lets_start
        assert fail(circuit, 1) == [None], "the count is back at nothing"

    def test_pauses_double_up_to_a_limit_and_begin_anew_after_a_success(self):
        circuit = self.opened()
        pauses = []
        for index in range(9):
            circuit.probe_due()
            circuit.started(index)
            pauses.append(circuit.failed(index, A).pause)
        assert pauses == [10, 20, 40, 80, 160, 320, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
        circuit.probe_due()
        circuit.started(10)
        circuit.succeeded(10)
        assert fail(circuit, 2)[1].pause == 5.0

    def test_a_first_pause_longer_than_the_limit_does_not_shrink(self):
        circuit = self.opened(probe_after=5000.0)
        circuit.probe_due()
        circuit.started(1)
        assert circuit.failed(1, A).pause == 5000.0

    def test_a_failed_attempt_of_the_probe_is_enough(self):
        circuit = self.opened()
        circuit.probe_due()
        circuit.started(5)
        assert circuit.probe_failed(4, A) is None
        assert circuit.probe_failed(5, B).cause == B
        assert circuit.state is State.OPEN

    def test_a_probe_that_got_no_thread_gives_its_place_back(self):
        circuit = self.opened()
        circuit.probe_due()
        circuit.started(5)
        circuit.taken_back(4)
        assert not circuit.lets_start
        circuit.taken_back(5)
        assert circuit.lets_start

    def test_what_was_running_before_changes_nothing(self):
        circuit = self.opened()
        assert circuit.failed(7, A) is None
        circuit.succeeded(8)
        assert circuit.state is State.OPEN

    @given(st.lists(st.tuples(st.sampled_from(["start", "ok", "fail", "due", "back"]), st.integers(0, 4)), max_size=80))
    def test_never_more_than_one_probe(self, happenings):
        circuit = Circuit(Breaker(1, "pause", 1.0))
        probing = None
        for what, index in happenings:
            if what == "start" and circuit.lets_start:
                if circuit.state is State.HALF_OPEN:
                    assert probing is None
                    probing = index
                circuit.started(index)
            elif what == "ok":
                assert circuit.succeeded(index) == (probing == index)
                probing = None if probing == index else probing
            elif what == "fail":
                trip = circuit.failed(index, A)
                if probing == index:
                    assert trip is not None
                    probing = None
            elif what == "back":
                circuit.taken_back(index)
                probing = None if probing == index else probing
            else:
                circuit.probe_due()
            assert (circuit.state is State.PROBING) == (probing is not None)


def error(message, kind="agent", type_="SomeError", **fields):
    return TaskError(type=type_, message=message, kind=kind, **fields)


class TestCauses:
    @pytest.mark.parametrize(("one", "other"), [
        ('task "a" has no model', 'task "b" has no model'),
        ("row 17 of 20 is empty", "row 18 of 20 is empty"),
        ("asked 8,212 tokens, 8192 are allowed", "asked 9,001 tokens, 8192 are allowed"),
        ("took 1.5 s", "took 22 s"),
        ("try again in 20ms", "try again in 1.5s"),
        ("failed (request id: req_a1b2c3)", "failed (request id: req_9z8y7x)"),
        ("at 2026-01-02 10:11:12 it broke", "at 2026-03-04 22:23:24 it broke"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174999"),
    ])  # fmt: skip
    def test_what_changes_from_task_to_task_is_left_out(self, one, other):
        assert normalised(one) == normalised(other)
        assert cause_of(error(one), "error") == cause_of(error(other), "error")

    @pytest.mark.parametrize(("one", "other"), [
        ("The model `gpt-4` does not exist", "The model `gpt-5` does not exist"),
        ("unknown parameter temperature", "unknown parameter top_p"),
        ("llama3.1 is not loaded", "llama3.2 is not loaded"),
    ])  # fmt: skip
    def test_what_names_the_cause_stays(self, one, other):
        assert cause_of(error(one, "configuration"), "error") != cause_of(error(other, "configuration"), "error")

    def test_some_kinds_say_enough_beside_status_and_endpoint(self):
        def of(text, **fields):
            return cause_of(error(text, **{"kind": "connection", **fields}), "error")

        assert of("refused by http://a:80/v1/chat") == of("broken pipe to http://a:80/v1/models")
        assert of("refused by http://a:80/v1") != of("refused by http://b:80/v1")
        assert of("x", kind="provider", status_code=500) == of("y", kind="provider", status_code=500)
        assert of("x", kind="provider", status_code=500) != of("x", kind="provider", status_code=503)
        assert of("x", kind="quota") != of("x", kind="authentication")

    def test_what_a_server_sent_in_place_of_an_answer_is_no_cause_of_its_own(self):
        def of(text):
            return cause_of(error(text, "invalid_answer", "UnusableAnswerError"), "error")

        assert of("http://a:80 answered 200 with '<p>busy'") == of("http://a:80 answered 200 with '{\"id\":'")
        assert of("http://a:80 answered 200 with '<p>busy'") != of("http://b:80 answered 200 with '<p>busy'")

    def test_a_time_limit_has_a_cause_too(self):
        assert cause_of(None, "deadline") == cause_of(None, "deadline")
        assert cause_of(None, "deadline") != cause_of(None, "idle")
        assert "deadline" in str(cause_of(None, "deadline"))

    def test_words(self):
        shown = str(cause_of(error("wrong key " + "x" * 500, "authentication", status_code=401), "error"))
        assert shown.startswith("authentication, status 401: SomeError: wrong key")
        assert len(shown) < 300

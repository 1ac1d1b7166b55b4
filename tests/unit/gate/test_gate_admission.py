"""The queue before the limits: atomic, in order, in time, and nothing is lost to a cut."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ag2_parallel.gate.admission import Admission, Route
from ag2_parallel.gate.limits import Need, RequestLimit, SlotLimit, TokenLimit
from ag2_parallel.gate.pacing import EndpointPace
from ag2_parallel.gate.rate import TOLERANCE

NEED = Need(10, 4)


def queue(*limits, priority=0):
    return Admission(), Route(tuple(limits), priority)


def test_a_call_goes_at_once_where_every_limit_lets_it():
    admission, route = queue(RequestLimit("r", 10), SlotLimit("s", 1))
    assert admission.ask(route, NEED, None, 0.0).state == "granted"
    assert admission.ask(route, NEED, None, 0.0).state == "waiting"


def test_nothing_is_taken_from_one_limit_while_another_is_busy():
    requests, slots = RequestLimit("r", 1), SlotLimit("s", 1)
    admission, both = Admission(), Route((requests, slots))
    alone = Route((requests,))
    first = admission.ask(both, NEED, None, 0.0)
    second = admission.ask(both, NEED, None, 10.0)  # there is a request to spend, and no slot
    assert (first.state, second.state, admission.advance(10.0)) == ("granted", "waiting", [])
    third = admission.ask(alone, NEED, None, 10.0)
    assert admission.advance(10.0) == [third], "the request that is there is not kept back by the one without a slot"


def test_what_held_a_call_up_is_kept_for_it():
    requests, slots = RequestLimit("r", 1), SlotLimit("s", 1)
    admission, both, only_requests = Admission(), Route((requests, slots)), Route((requests,))
    held = admission.ask(only_requests, NEED, None, 0.0)
    assert held.state == "granted"
    needs_both = admission.ask(both, NEED, None, 0.0)
    admission.advance(0.0)  # waits for a request
    late = admission.ask(only_requests, NEED, None, 0.0)
    assert admission.advance(0.95) == [needs_both]
    assert admission.advance(0.95) == []
    assert admission.advance(1.95) == [late]


def test_a_limit_is_not_kept_for_a_call_that_waits_long_for_another():
    often, seldom = RequestLimit("often", 1), RequestLimit("seldom", 0.01)
    admission, both, quick = Admission(), Route((often, seldom)), Route((often,))
    admission.ask(both, NEED, None, 0.0)
    slow = admission.ask(both, NEED, None, 0.0)
    admission.advance(0.0)  # waits for both, for one of them much longer
    second = admission.ask(quick, NEED, None, 0.5)
    assert admission.advance(1.5) == [second]
    third = admission.ask(quick, NEED, None, 99.0)
    assert admission.advance(99.5) == [], "half a second before the slow one goes, nobody takes its request"
    assert admission.advance(100.0) == [slow]
    assert admission.advance(101.0) == [third]


def test_first_come_first_served_within_a_priority():
    limit = RequestLimit("r", 1)
    admission, low, high = Admission(), Route((limit,), 0), Route((limit,), 5)
    admission.ask(low, NEED, None, 0.0)
    waiting = [admission.ask(route, NEED, None, 0.0) for route in (low, low, high, low, high)]
    order = []
    for second in range(1, 6):
        order += admission.advance(float(second))
    assert order == [waiting[2], waiting[4], waiting[0], waiting[1], waiting[3]]


def test_a_slow_model_does_not_stop_a_fast_one():
    admission, slow, fast = Admission(), Route((RequestLimit("slow", 0.01),)), Route((RequestLimit("fast", 100),))
    admission.ask(slow, NEED, None, 0.0)
    admission.ask(slow, NEED, None, 0.0)
    assert admission.ask(fast, NEED, None, 0.0).state == "granted"


def test_a_call_that_cannot_go_in_time_is_refused_at_once():
    admission, route = queue(RequestLimit("r", 1))
    states = [admission.ask(route, NEED, 3.0, 0.0).state for _ in range(6)]
    assert states == ["granted", "waiting", "waiting", "waiting", "refused", "refused"]


def test_a_high_priority_is_not_refused_for_those_behind_it():
    limit = RequestLimit("r", 1)
    admission = Admission()
    for _ in range(10):
        admission.ask(Route((limit,), 0), NEED, None, 0.0)
    assert admission.ask(Route((limit,), 1), NEED, 2.0, 0.0).state == "waiting"


def test_a_cut_waiter_gives_its_place_back():
    admission, route = queue(RequestLimit("r", 1))
    _, cut, next_one = (admission.ask(route, NEED, None, 0.0) for _ in range(3))
    admission.leave(cut)
    assert admission.advance(1.0) == [next_one]
    assert admission.waiting == 0


def test_a_call_that_was_let_go_and_not_sent_gives_its_share_back():
    tokens, slots = TokenLimit("t", 10), SlotLimit("s", 1)
    admission, route = queue(tokens, slots)
    first = admission.ask(route, Need(100, 100), None, 0.0)
    admission.leave(first)
    assert admission.ask(route, Need(100, 100), None, 0.0).state == "granted"


def test_a_pause_refuses_those_in_the_queue_who_cannot_wait_so_long():
    pace = EndpointPace("e")
    admission, route = queue(pace, SlotLimit("s", 1))
    sent = admission.ask(route, NEED, None, 0.0)
    hasty, patient = admission.ask(route, NEED, 5.0, 0.0), admission.ask(route, NEED, 50.0, 0.0)
    pace.refused(sent.since, 0.1, 10.0, 0.1)
    assert admission.refuse_late(pace, 0.1) == [hasty]
    assert (hasty.until, patient.state) == (pytest.approx(10.1), "waiting")
    assert admission.ask(route, NEED, 5.0, 0.2).state == "refused"
    assert admission.ask(route, NEED, None, 0.2).state == "waiting"
    pace.refused(sent.since, 0.2, 86_400.0, 0.1)
    assert admission.ask(route, NEED, None, 0.3).state == "waiting", "a day is nonsense, and not for all"


def test_who_is_next_is_refused_once_answers_used_so_much_that_it_cannot_go_in_time():
    admission, route = queue(TokenLimit("t", 100))
    first = admission.ask(route, Need(100, 10), None, 0.0)
    hasty, patient = admission.ask(route, Need(100, 10), 5.0, 0.0), admission.ask(route, Need(100, 10), 50.0, 0.0)
    assert (hasty.state, admission.advance(0.0)) == ("waiting", [])
    admission.done(first, 1_000, 0.1)
    assert admission.advance(0.1) == [hasty]
    assert (hasty.state, hasty.until, patient.state) == ("refused", pytest.approx(10, abs=0.2), "waiting")
    assert admission.advance(10.1) == [patient]


@pytest.mark.parametrize("used", [5, 10, 400])
def test_tokens_are_corrected_by_what_was_used(used):
    admission, route = queue(TokenLimit("t", 100))
    first = admission.ask(route, Need(300, 100), None, 0.0)
    admission.ask(route, Need(100, 100), None, 0.0)
    admission.done(first, used, 0.0)
    admission.advance(0.0)
    assert (admission.wake_at or 0.0) == pytest.approx(used / 100 if used > 10 else 0.05 * (used > 5) * 2, abs=0.11)


class Machine(RuleBasedStateMachine):
    """Any calls at any time: no limit is ever exceeded, and what can go goes."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.admission = Admission()
        self.requests = RequestLimit("requests", 4.0)
        self.slots = SlotLimit("slots", 2)
        self.tokens = TokenLimit("tokens", 50.0)
        choices = [
            (self.requests,),
            (self.slots,),
            (self.requests, self.slots),
            (self.requests, self.slots, self.tokens),
        ]
        self.routes = [Route(choice, priority) for choice in choices for priority in (0, 1)]
        self.tickets = []
        self.sent = []

    def note(self, tickets):
        for ticket in tickets:
            if ticket.state == "refused":
                assert ticket.until > ticket.latest
                continue
            assert ticket.state == "granted"
            self.sent.append((self.now, ticket))

    @rule(which=st.integers(0, 7), tokens=st.integers(1, 40), latest=st.sampled_from([None, None, 1.0, 5.0]))
    def ask(self, which, tokens, latest):
        due = None if latest is None else self.now + latest
        ticket = self.admission.ask(self.routes[which], Need(tokens, tokens // 2), due, self.now)
        self.tickets.append(ticket)
        self.note([ticket] if ticket.state == "granted" else [])
        self.note(self.admission.advance(self.now))

    @precondition(lambda self: any(t.state == "granted" for t in self.tickets))
    @rule(data=st.data(), used=st.sampled_from([None, 0, 5, 60]))
    def done(self, data, used):
        ticket = data.draw(st.sampled_from([t for t in self.tickets if t.state == "granted"]))
        self.admission.done(ticket, used, self.now)
        self.note(self.admission.advance(self.now))

    @precondition(lambda self: any(t.state == "waiting" for t in self.tickets))
    @rule(data=st.data())
    def cut(self, data):
        self.admission.leave(data.draw(st.sampled_from([t for t in self.tickets if t.state == "waiting"])))
        self.note(self.admission.advance(self.now))

    @rule(seconds=st.sampled_from([0.01, 0.1, 0.3, 2.0]))
    def time_passes(self, seconds):
        end = self.now + seconds
        while (wake := self.admission.wake_at) is not None and wake <= end:
            self.now = max(self.now, wake)
            self.note(self.admission.advance(self.now))
        self.now = end
        self.note(self.admission.advance(self.now))

    @invariant()
    def never_above_a_limit(self):
        of_requests = [at for at, ticket in self.sent if self.requests in ticket.route.limits]
        for first in range(len(of_requests)):
            for last in range(first, len(of_requests)):
                span = of_requests[last] - of_requests[first]
                assert last - first + 1 <= 4.0 * (span + TOLERANCE) + 1 + 1e-6
        assert sum(self.slots in t.route.limits and t.state == "granted" for t in self.tickets) <= 2

    @invariant()
    def the_first_of_a_line_waits_for_something(self):
        for route in self.routes:
            line = [t for t in route.line if t.state == "waiting"]
            assert route.waiting == len(line)
            assert [t.serial for t in line] == sorted(t.serial for t in line)
        if not any(t.state == "waiting" for t in self.tickets):
            assert self.admission.waiting == 0
            assert not any(sum(limit._queued.values()) for limit in (self.requests, self.slots, self.tokens))

    @invariant()
    def nobody_is_passed_over_at_a_limit_all_share(self):
        for route in self.routes[:2]:
            if route.first() is not None and route.priority == 1:
                kept = self.admission.wake_at is not None and self.admission.wake_at - self.now <= 0.25
                assert self.requests.ready_at(NEED, self.now) > self.now or kept


TestAdmission = Machine.TestCase
TestAdmission.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)

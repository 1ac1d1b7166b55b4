"""Limits that are kept in another process, as the calls of this one see them."""

import asyncio

import pytest
from test_lease_office import NO_LIMIT

from ag2_parallel.gate.leases import Leases
from ag2_parallel.gate.limits import NOTHING


class Request:
    endpoint = "http://server"
    model = "m"
    headers = ()


class Wire:
    def __init__(self):
        self.said = []

    def ask(self, course, ticket, need, patience):
        self.said.append(("ask", ticket))

    def done(self, ticket, used, *, went_through):
        self.said.append(("done", ticket))

    def leave(self, ticket):
        self.said.append(("leave", ticket))

    def passed(self, ticket, count):
        self.said.append(("passed", ticket, count))

    def throttled(self, ticket, hint, initial, took):
        self.said.append(("throttled", ticket, took))


class Office:
    """Leases, and what they say."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.time = 0.0
        self.wire = Wire()
        self.leases = Leases(self.loop, self.wire)
        self.leases.now = lambda: self.time
        self.way = self.leases.way(Request, NO_LIMIT, None, 0)

    @property
    def said(self):
        said, self.wire.said = self.wire.said, []
        return said

    def call(self, *, standing=True):
        """A call that is let go."""
        permit = self.leases.ask(self.way, NOTHING, None)
        if permit.state == "asking":
            self.leases.granted(permit.number, None, standing=standing)
        assert permit.state == "granted"
        return permit

    def answered(self, permit):
        self.leases.went_through(self.way, permit)
        self.leases.done(permit, None)


@pytest.fixture
def office():
    made = Office()
    yield made
    made.loop.close()


def test_a_standing_lease_serves_one_call_after_another(office):
    for _ in range(3):
        office.answered(office.call())
    assert office.said == [("ask", 1)]
    first, second = office.call(), office.call()
    assert office.said == [("ask", 2)], "two at once need two"
    office.answered(first)
    office.answered(second)
    office.leases.tidy()
    assert office.said == [("passed", 1, 4), ("passed", 2, 1)]
    office.leases.tidy()
    assert office.said == []


def test_a_lease_that_is_not_standing_is_given_back_with_its_call(office):
    office.answered(office.call(standing=False))
    office.answered(office.call(standing=False))
    assert office.said == [("ask", 1), ("done", 1), ("ask", 2), ("done", 2)]


def test_a_standing_lease_that_lies_idle_goes_back(office):
    office.answered(office.call())
    in_use = office.call()
    idle = office.call()
    office.answered(idle)
    office.time = 1.5
    assert office.said == [("ask", 1), ("ask", 2)]
    office.leases.tidy()
    assert office.said == [("passed", 1, 1), ("passed", 2, 1), ("leave", 2)]
    office.answered(in_use)
    office.time = 2.0
    office.leases.tidy()
    assert office.said == [("passed", 1, 1)], "it was needed a moment ago"


def test_a_call_that_was_not_sent_passes_its_lease_on_and_does_not_count(office):
    office.leases.leave(office.call())
    office.call()
    office.leases.tidy()
    assert office.said == [("ask", 1)]


def test_nothing_stands_any_more_once_the_server_asked_for_fewer(office):
    refused, other, idle = office.call(), office.call(), office.call()
    office.answered(idle)
    office.said.clear()
    office.time = 0.25
    office.leases.throttled(office.way, refused, 2.0, 0.5)
    office.leases.done(refused, 0)
    for number in (2, 3):
        office.leases.revoked(number)
    assert office.said == [("throttled", 1, 0.25), ("done", 1), ("passed", 3, 1), ("leave", 3)]
    office.answered(other)
    office.call()
    assert office.said == [("done", 2), ("ask", 4)]


def test_a_lease_that_comes_too_late_is_left_alone(office):
    permit = office.leases.ask(office.way, NOTHING, None)
    office.leases.leave(permit)
    office.leases.granted(permit.number, None, standing=True)
    office.leases.tidy()
    assert office.said == [("ask", 1), ("leave", 1)]
    assert office.leases.ask(office.way, NOTHING, None).state == "asking"

"""Limits kept in one process for the calls of others."""

import asyncio
from dataclasses import dataclass

import pytest

from ag2_parallel import RateLimit
from ag2_parallel.gate.lease_office import LeaseOffice
from ag2_parallel.gate.wishes import CallLimits

ONE_AT_A_TIME = CallLimits((RateLimit(concurrent=1),))
NO_LIMIT = CallLimits()


@dataclass
class Wish:
    ticket: int
    endpoint: str = "http://server"
    mark: str = ""
    model: str | None = "m"
    group: str | None = None
    priority: int = 0
    tokens: int = 0
    sure: int = 0
    patience: float | None = None


class Replies:
    def __init__(self):
        self.told = []
        self.standing = set()
        self.changed = asyncio.Event()

    async def until(self, *told):
        while told not in self.told:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 10)

    def granted(self, ticket, held_by, *, standing):
        self.told.append(("granted", ticket))
        self.changed.set()
        if standing:
            self.standing.add(ticket)

    def revoked(self, ticket):
        self.standing.discard(ticket)

    def queued(self, ticket):
        self.told.append(("queued", ticket))

    def denied(self, ticket, held_by, wait):
        self.told.append(("denied", ticket))


async def turns():
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def replies():
    return Replies()


def in_office(story):
    async def run():
        await story(LeaseOffice(asyncio.get_running_loop()))

    asyncio.run(run())


def test_a_limit_holds_over_all_holders(replies):
    async def story(office):
        office.ask("p1", Wish(1), ONE_AT_A_TIME, replies)
        office.ask("p2", Wish(1), ONE_AT_A_TIME, replies)
        office.ask("p2", Wish(2), ONE_AT_A_TIME, replies)
        assert replies.told == [("granted", 1), ("queued", 1), ("queued", 2)]
        office.done("p1", 1, None, went_through=True)
        await turns()
        assert replies.told[3:] == [("granted", 1)]
        office.leave("p2", 1)
        await turns()
        assert replies.told[4:] == [("granted", 2)]

    in_office(story)


def test_a_lost_holder_gives_its_leases_back(replies):
    async def story(office):
        office.ask("p1", Wish(1), ONE_AT_A_TIME, replies)
        office.ask("p1", Wish(2), ONE_AT_A_TIME, replies)
        office.ask("p2", Wish(1), ONE_AT_A_TIME, replies)
        office.lost("p1")
        await turns()
        assert replies.told[3:] == [("granted", 1)]
        office.done("p1", 1, None, went_through=True)  # said before it died: nobody's lease any more
        office.leave("p1", 2)
        office.ask("p3", Wish(9), ONE_AT_A_TIME, replies)
        assert replies.told[-1] == ("queued", 9)

    in_office(story)


def test_what_cannot_go_in_time_is_denied_at_once(replies):
    limits = CallLimits((RateLimit(requests=1, per=60),))

    async def story(office):
        office.ask("p1", Wish(1), limits, replies)
        office.ask("p2", Wish(1, patience=1.0), limits, replies)
        assert replies.told == [("granted", 1), ("denied", 1)]

    in_office(story)


def test_a_call_that_leaves_while_it_waits_is_not_granted_later(replies):
    async def story(office):
        office.ask("p1", Wish(1), ONE_AT_A_TIME, replies)
        office.ask("p2", Wish(1), ONE_AT_A_TIME, replies)
        await turns()
        office.leave("p2", 1)
        office.done("p1", 1, None, went_through=True)
        await turns()
        assert replies.told == [("granted", 1), ("queued", 1)]
        office.ask("p3", Wish(3), ONE_AT_A_TIME, replies)
        assert replies.told[-1] == ("granted", 3)

    in_office(story)


def test_a_call_that_leaves_before_its_wait_has_begun_leaves_nothing_behind(replies):
    async def story(office):
        office.ask("a", Wish(1), ONE_AT_A_TIME, replies)
        office.ask("b", Wish(1), ONE_AT_A_TIME, replies)
        office.leave("b", 1)
        await turns()
        assert office._turnstile.waiting == 0
        office.done("a", 1, None, went_through=True)
        office.ask("b", Wish(2), ONE_AT_A_TIME, replies)
        await turns()
        assert replies.told == [("granted", 1), ("queued", 1), ("granted", 2)]

    in_office(story)


def test_a_server_that_throttles_one_process_is_paused_for_all(replies):
    async def story(office):
        office.ask("p1", Wish(1), NO_LIMIT, replies)
        office.throttled("p1", 1, 30.0, 0.1, 0.0)
        office.ask("p2", Wish(2), NO_LIMIT, replies)
        office.ask("p2", Wish(3, patience=5.0), NO_LIMIT, replies)
        assert replies.told == [("granted", 1), ("queued", 2), ("denied", 3)]
        office.ask("p2", Wish(4, endpoint="http://other"), NO_LIMIT, replies)
        office.ask("p2", Wish(5, mark="another key"), NO_LIMIT, replies)
        await turns()
        granted = [ticket for what, ticket in replies.told if what == "granted"]
        assert granted == [1, 4, 5]
        office.lost("p2")

    in_office(story)


def warm(office, replies, endpoint="http://server"):
    """So many calls that are answered that nothing seems to be limited."""
    for number in range(1000, 1110):
        office.ask("p0", Wish(number, endpoint=endpoint), NO_LIMIT, replies)
        office.done("p0", number, None, went_through=True)
    replies.told.clear()
    replies.standing.clear()


def test_a_lease_stands_where_nothing_limits_calls_until_a_server_asks_for_fewer(replies):
    async def story(office):
        office.ask("p1", Wish(0), NO_LIMIT, replies)
        assert replies.standing == set(), "nothing is known of the server yet"
        warm(office, replies)
        warm(office, replies, "http://other")
        office.ask("p1", Wish(1), NO_LIMIT, replies)
        office.ask("p2", Wish(2), NO_LIMIT, replies)
        office.ask("p2", Wish(3, endpoint="http://other"), NO_LIMIT, replies)
        office.ask("p2", Wish(4), ONE_AT_A_TIME, replies)
        office.ask("p2", Wish(9), NO_LIMIT, replies, may_stand=False)
        assert replies.standing == {1, 2, 3}
        office.throttled("p1", 1, 30.0, 0.1, 0.0)
        assert replies.standing == {3}
        office.ask("p2", Wish(5), NO_LIMIT, replies)
        assert replies.told[-1] == ("granted", 5), "many answers bear one refusal"
        assert replies.standing == {3}
        for _ in range(6):
            office.throttled("p1", 1, 30.0, 0.1, 0.0)
        office.ask("p2", Wish(6, patience=60.0), NO_LIMIT, replies)
        assert replies.told[-1] == ("queued", 6)
        office.lost("p2")

    in_office(story)


def test_what_passed_on_a_standing_lease_counts_for_the_pace(replies):
    async def story(office):
        start = asyncio.get_running_loop().time()
        office.ask("p1", Wish(1), NO_LIMIT, replies)
        office.passed("p1", 1, 300)
        for _ in range(10):  # so many answers bear some refusals
            office.throttled("p1", 1, 0.2, 0.1, 0.0)
        office.ask("p1", Wish(2), NO_LIMIT, replies)
        await replies.until("granted", 2)
        seconds = asyncio.get_running_loop().time() - start
        pace = office._leases["p1"][2].way.pace
        assert 300 * 0.9 / seconds < pace.rate < 300 / 0.2
        assert replies.standing == set(), "it is paced now"

    in_office(story)

"""Waiting for workers that are started ahead."""

import threading

import pytest

from ag2_parallel import Ag2ParallelError
from ag2_parallel.backends.ahead import Ahead


def waiting(ahead):
    """A thread that waits; what it came to is put into the list."""
    outcome = []

    def wait():
        try:
            ahead.wait()
            outcome.append("ready")
        except Ag2ParallelError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, outcome


def test_until_all_are_there():
    ahead = Ahead()
    thread, outcome = waiting(ahead)
    ahead.expect(2)
    ahead.came()
    thread.join(0.05)
    assert outcome == []
    ahead.came()
    thread.join(5)
    assert outcome == ["ready"]


def test_one_that_fails_is_not_waited_for():
    ahead = Ahead()
    ahead.expect(2)
    ahead.failed("could not be started: no such environment")
    ahead.came()
    ahead.wait()


def test_none_that_starts():
    ahead = Ahead()
    ahead.expect(2)
    for _ in range(2):
        ahead.failed("could not be started: no such environment")
    with pytest.raises(
        Ag2ParallelError, match="no actor could be started: one could not be started: no such environment"
    ):
        ahead.wait()


def test_nobody_is_wanted_any_more():
    ahead = Ahead()
    thread, outcome = waiting(ahead)
    ahead.expect(2)
    ahead.give_up()
    thread.join(5)
    assert outcome == ["ready"]

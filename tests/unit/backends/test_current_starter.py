"""What starts worker processes is made anew where it has ended, also in the moment in which it is needed."""

import pytest

from ag2_parallel.backends.current_starter import CurrentStarter


class MadeStarter:
    places, elsewhere = None, False

    def __init__(self, *, dies=False, refuses=False):
        self.alive = True
        self._dies, self._refuses = dies, refuses

    def start(self, sock, exited):
        if self._dies:
            self.alive = False
        if self._dies or self._refuses:
            raise BrokenPipeError
        return lambda: None

    def close(self):
        self.alive = False


def current(*starters):
    left = list(starters)
    made = CurrentStarter(lambda preload: left.pop(0), lambda: None)
    made.open(preload=False)
    return made, left


def test_one_that_ends_while_it_is_asked_is_replaced():
    made, left = current(MadeStarter(dies=True), MadeStarter())
    made.start(None, print)
    assert left == []


def test_one_that_lives_and_cannot_is_not_replaced():
    made, left = current(MadeStarter(refuses=True), MadeStarter())
    with pytest.raises(BrokenPipeError):
        made.start(None, print)
    assert len(left) == 1


def test_nothing_is_started_for_a_pool_that_closes():
    starter = MadeStarter()
    left = [starter]
    made = CurrentStarter(lambda preload: left.pop(0), lambda: None)
    made.closing()
    made.open(preload=False)  # a run that was cancelled while it got ready asks so for each of its tasks
    assert left == [starter]

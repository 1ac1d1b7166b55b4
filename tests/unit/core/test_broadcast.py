"""Events to observers: in order, on one thread, the oldest progress events dropped when there are too many."""

import threading

from ag2_parallel.core.broadcast import Broadcast
from ag2_parallel.events import RunWarning, TaskReported


def test_events_come_in_order_on_one_thread():
    seen, threads = [], set()

    def observer(event):
        seen.append(event.message)
        threads.add(threading.get_ident())

    broadcast = Broadcast([observer], "r")
    for number in range(100):
        broadcast.emit(RunWarning, message=str(number))
    broadcast.close(10)
    assert seen == [str(number) for number in range(100)]
    assert threads.isdisjoint({threading.get_ident()})
    assert len(threads) == 1


def test_nobody_listens_nothing_is_made():
    broadcast = Broadcast([], "r")
    broadcast.emit(RunWarning, nonsense="never looked at")
    broadcast.close(1)
    assert not broadcast.observed()


def test_too_many_events_drop_the_oldest_progress_first():
    release, seen = threading.Event(), []

    def observer(event):
        release.wait(10)
        seen.append(event.message)

    broadcast = Broadcast([observer], "r")
    broadcast.emit(RunWarning, message="first")
    for number in range(10_100):
        broadcast.emit(TaskReported, message=f"progress {number}")
    broadcast.emit(RunWarning, message="last")
    release.set()
    broadcast.close(30)
    assert seen[0] == "first"
    assert seen[-1] == "last"
    assert broadcast.dropped >= 100
    assert len(seen) + broadcast.dropped == 10_102
    assert "progress 10099" in seen


def test_functions_run_in_order_with_the_events():
    seen = []
    broadcast = Broadcast([lambda event: seen.append(event.message)], "r")
    broadcast.emit(RunWarning, message="before")
    broadcast.call(lambda: seen.append("function"))
    broadcast.emit(RunWarning, message="after")
    broadcast.close(10)
    assert seen == ["before", "function", "after"]


class Choosy:
    """Listens to warnings alone."""

    wants = frozenset({RunWarning})

    def __init__(self):
        self.seen = []

    def __call__(self, event):
        self.seen.append(event)


def test_what_no_observer_wants_is_not_made():
    choosy = Choosy()
    broadcast = Broadcast([choosy], "r")
    assert broadcast.observed()
    assert broadcast.observed(RunWarning)
    assert not broadcast.observed(TaskReported)
    broadcast.emit(TaskReported, nonsense="never looked at")
    broadcast.emit(RunWarning, message="told")
    broadcast.close(10)
    assert [event.message for event in choosy.seen] == ["told"]


def test_one_observer_that_wants_everything_is_enough():
    seen, choosy = [], Choosy()
    broadcast = Broadcast([choosy, seen.append], "r")
    assert broadcast.observed(TaskReported)
    broadcast.emit(TaskReported, message="told")
    broadcast.close(10)
    assert [event.message for event in seen] == ["told"]


def test_an_observer_that_has_any_attribute_is_told_everything():
    class Anything:
        """As the stand-ins of mocking libraries are."""

        def __init__(self):
            self.seen = []

        def __getattr__(self, name):
            return Anything()

        def __call__(self, event):
            self.seen.append(event)

    observer = Anything()
    broadcast = Broadcast([observer], "r")
    broadcast.emit(RunWarning, message="careful")
    broadcast.close(10)
    assert [event.message for event in observer.seen] == ["careful"]

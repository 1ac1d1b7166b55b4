"""A recording observer keeps events in order and can be waited on."""

import threading

import pytest

from ag2_parallel.events import AttemptStarted, Event, RunStarted, RunWarning
from ag2_parallel.testing import RecordingObserver

STARTED = RunStarted(run_id="r", total=1, max_workers=1)
ATTEMPT = AttemptStarted(run_id="r", task="a", index=0, attempt=1)
WARNING = RunWarning(run_id="r", message="careful")


def test_it_keeps_events_in_order():
    observer = RecordingObserver()
    for event in (STARTED, ATTEMPT, WARNING):
        observer(event)
    assert observer.events == [STARTED, ATTEMPT, WARNING]
    assert observer.names == ["RunStarted", "AttemptStarted", "RunWarning"]
    assert observer.of(AttemptStarted) == [ATTEMPT]
    assert observer.of(Event) == observer.events


def test_what_it_gives_out_is_a_copy():
    observer = RecordingObserver()
    observer.events.append(STARTED)
    assert observer.events == []


def test_it_waits_for_an_event_to_come():
    observer = RecordingObserver()
    sending = threading.Timer(0.02, lambda: [observer(event) for event in (STARTED, WARNING)])
    sending.start()
    assert observer.wait_for(RunWarning) is WARNING
    assert observer.wait_for(lambda event: event.run_id == "r") is STARTED
    sending.join()


def test_it_says_what_came_in_place_of_what_was_wanted():
    observer = RecordingObserver()
    with pytest.raises(TimeoutError, match=r"no RunWarning within 0\.01 seconds; seen: nothing"):
        observer.wait_for(RunWarning, timeout=0.01)
    observer(STARTED)
    with pytest.raises(TimeoutError, match=r"no wanted event within .* seen: RunStarted"):
        observer.wait_for(lambda event: event.task == "b", timeout=0.01)

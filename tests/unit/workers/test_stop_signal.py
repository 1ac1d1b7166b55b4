"""How one attempt is told to stop."""

import threading

import pytest

from ag2_parallel import TaskStopped
from ag2_parallel.workers.stop_signal import StopSignal


def test_before_it_is_set_nothing_raises():
    signal = StopSignal()
    signal.check()
    signal.check_call()


def test_the_first_checkpoint_raises_and_then_events_pass_while_model_calls_are_refused():
    signal = StopSignal()
    signal.set("deadline")
    with pytest.raises(TaskStopped) as caught:
        signal.check()
    assert caught.value.reason == "deadline"
    signal.check()
    with pytest.raises(TaskStopped):
        signal.check_call()
    signal.check()


def test_insisting_makes_every_checkpoint_raise():
    signal = StopSignal()
    signal.set("deadline")
    signal.insist()
    for _ in range(3):
        with pytest.raises(TaskStopped):
            signal.check()


def test_only_the_first_reason_counts():
    signal = StopSignal()
    signal.set("deadline")
    signal.set("cancelled")
    assert signal.reason == "deadline"


def test_listeners_are_told_at_the_stop_when_insisted_and_at_once_if_late():
    signal, told = StopSignal(), []
    with signal.on_stop(lambda: told.append("early")):
        signal.set("deadline")
        signal.insist()
    assert told == ["early", "early"]
    with signal.on_stop(lambda: told.append("late")):
        assert told[-1] == "late"
    signal.insist()
    assert told == ["early", "early", "late"]


def in_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_running_code_is_interrupted_in_the_users_code():
    signal, inside, caught = StopSignal(), threading.Event(), []

    def work():
        try:
            with signal.user_code():
                inside.set()
                while True:
                    pass
        except TaskStopped:
            caught.append("stopped")

    thread = in_thread(work)
    inside.wait(10)
    signal.set("deadline")
    signal.insist()
    while not signal.interrupt():
        thread.join(0.01)
    thread.join(10)
    assert caught == ["stopped"]
    assert signal.interrupted


def test_a_blocked_thread_is_left_alone():
    signal, inside, go = StopSignal(), threading.Event(), threading.Event()

    def work():
        with signal.user_code():
            inside.set()
            go.wait(10)

    thread = in_thread(work)
    inside.wait(10)
    thread.join(0.05)
    signal.set("deadline")
    signal.insist()
    assert not signal.interrupt()
    assert not signal.interrupted
    go.set()
    thread.join(10)
    assert signal.interrupt()


def test_code_of_ours_is_never_interrupted():
    signal, inside, go = StopSignal(), threading.Event(), threading.Event()
    outcome = []

    def work():
        with signal.user_code():
            with signal.own_code():
                inside.set()
                go.wait(10)
            outcome.append("left our code")

    thread = in_thread(work)
    inside.wait(10)
    signal.set("deadline")
    signal.interrupt()
    assert not signal.interrupted
    go.set()
    thread.join(10)
    assert outcome == ["left our code"]


def test_after_the_users_code_nothing_is_raised_any_more():
    """Raised at the very moment the code ends, the signal lands in no other code of the thread."""
    for _ in range(300):
        signal, landed = StopSignal(), []

        def work(signal=signal, landed=landed):
            try:
                with signal.user_code():
                    pass
            except TaskStopped:
                return
            try:
                sum(range(2000))
            except TaskStopped:
                landed.append("in other code")

        signal.reason = "deadline"
        thread = in_thread(work)
        for _ in range(50):
            signal.interrupt()
        thread.join(10)
        assert landed == []

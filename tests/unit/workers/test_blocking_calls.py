"""Blocking calls of an attempt's coroutines."""

import asyncio
import contextvars
import threading

import pytest

from ag2_parallel.errors import TaskStopped
from ag2_parallel.workers.coroutines import Coroutines
from ag2_parallel.workers.daemon_threads import DaemonThreads
from ag2_parallel.workers.stop_signal import StopSignal

place = contextvars.ContextVar("place", default="nowhere")


@pytest.fixture
def threads():
    made = DaemonThreads("test")
    yield made
    made.close()


@pytest.fixture
def signal():
    return StopSignal()


@pytest.fixture
def coroutines(threads, signal):
    return Coroutines(threads, signal, "t")


def test_they_run_on_threads_in_the_calling_context(coroutines):
    async def work():
        place.set("here")
        where = await coroutines.blocking.run(lambda: (threading.current_thread().name, place.get()))
        both = threading.Barrier(2, timeout=10)
        await asyncio.gather(coroutines.blocking.run(both.wait), coroutines.blocking.run(both.wait))
        return where

    name, seen = coroutines.run(work())
    assert name.startswith("test-")
    assert seen == "here"
    coroutines.close()


@pytest.mark.parametrize("error", [LookupError("gone"), TaskStopped("deadline"), StopIteration()])
def test_what_they_raise_is_raised_where_they_were_awaited(coroutines, error):
    def fail():
        raise error

    async def work():
        await coroutines.blocking.run(fail)

    with pytest.raises(RuntimeError if isinstance(error, StopIteration) else type(error)):
        coroutines.run(work())
    coroutines.close()


def test_a_stop_ends_the_wait_at_once_and_the_end_waits_for_the_call(coroutines, signal):
    started, release, back = threading.Event(), threading.Event(), threading.Event()

    def block():
        started.set()
        release.wait(10)
        back.set()

    def stop():
        started.wait(10)
        signal.set("deadline")

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(TaskStopped):
        coroutines.run(coroutines.blocking.run(block))
    assert not back.is_set()
    closer = threading.Thread(target=coroutines.close)
    closer.start()
    closer.join(0.1)
    assert closer.is_alive()
    release.set()
    closer.join(10)
    stopper.join(10)
    assert back.is_set()
    assert not closer.is_alive()


def test_the_signal_is_raised_in_running_code_of_their_threads(coroutines, signal):
    started, ended = threading.Event(), []

    def spin():
        started.set()
        try:
            while True:
                pass
        except TaskStopped:
            ended.append("stopped")
            raise

    def stop():
        started.wait(10)
        signal.set("deadline")
        signal.insist()
        while not signal.interrupt() and not ended:
            threading.Event().wait(0.02)

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(TaskStopped):
        coroutines.run(coroutines.blocking.run(spin))
    coroutines.close()
    stopper.join(10)
    assert ended == ["stopped"]
    assert signal.cut_short
    assert not signal.interrupted


def test_a_blocking_call_may_run_a_coroutine_itself(coroutines):
    async def inner():
        await asyncio.sleep(0)
        return "inner"

    async def work():
        return await coroutines.blocking.run(lambda: coroutines.run(inner()))

    assert coroutines.run(work()) == "inner"
    coroutines.close()

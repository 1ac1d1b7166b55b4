"""The event loop of one attempt."""

import asyncio
import contextlib
import os
import threading

import pytest

from ag2_parallel.workers.daemon_threads import DaemonExecutor, DaemonThreads
from ag2_parallel.workers.private_loop import PrivateLoop, finish


@pytest.fixture
def threads():
    threads = DaemonThreads("test")
    yield threads
    threads.close()


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_timers_and_threads_need_no_descriptor(threads):
    before = descriptors()
    loops = [PrivateLoop(threads) for _ in range(50)]

    async def work():
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    names = [loop.run_until_complete(work()) for loop in loops]
    assert all(name.startswith("test-") for name in names)
    assert descriptors() == before
    for loop in loops:
        finish(loop, within=1)


def test_sockets_work_and_are_given_back(threads):
    before = descriptors()
    loop = PrivateLoop(threads)

    async def talk():
        async def answer(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        return line

    assert loop.run_until_complete(talk()) == b"hello\n"
    finish(loop, within=1)
    assert descriptors() == before


def test_another_thread_wakes_it_up(threads):
    loop = PrivateLoop(threads)

    async def work():
        woken = asyncio.Event()
        threading.Timer(0.01, lambda: loop.call_soon_threadsafe(woken.set)).start()
        await asyncio.wait_for(woken.wait(), 10)
        return "woken"

    assert loop.run_until_complete(work()) == "woken"
    finish(loop, within=1)


def test_finishing_cancels_what_is_left(threads):
    loop, log = PrivateLoop(threads), []

    async def left():
        try:
            await asyncio.sleep(60)
        finally:
            log.append("unwound")

    async def broken():
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                log.append("swallowed")

    async def work():
        for coroutine in (left(), broken(), stubborn()):
            loop.create_task(coroutine)
        await asyncio.sleep(0)

    loop.run_until_complete(work())
    finish(loop, within=0.05)
    assert log == ["unwound", "swallowed"] or log == ["swallowed", "unwound"]
    assert loop.is_closed()


def test_contexts_inside_each_other_that_were_left_half_way_are_closed_in_their_order(threads):
    for _ in range(10):  # of generators that are closed at once chance says which is the first
        loop, log, complaints = PrivateLoop(threads), [], []
        loop.set_exception_handler(lambda _loop, about, complaints=complaints: complaints.append(about))

        @contextlib.asynccontextmanager
        async def scope(depth, log=log):
            try:
                if depth:
                    async with scope(depth - 1):
                        yield
                else:
                    yield
            finally:
                await asyncio.sleep(0)
                log.append(depth)

        half_way = scope(3)
        loop.run_until_complete(half_way.__aenter__())
        finish(loop, within=1)
        assert log == [0, 1, 2, 3]
        assert complaints == []


def test_a_generator_that_breaks_when_it_is_closed_is_told_of(threads):
    loop, complaints = PrivateLoop(threads), []
    loop.set_exception_handler(lambda _loop, about: complaints.append(str(about["exception"])))

    async def broken():
        try:
            yield
        finally:
            raise ValueError("cannot close")

    half_way = broken()

    async def begin():
        await anext(half_way)

    loop.run_until_complete(begin())
    finish(loop, within=1)
    assert complaints == ["cannot close"]


def test_the_executor_hands_over_results_and_errors(threads):
    executor = DaemonExecutor(threads)
    assert executor.submit(lambda: 3).result(10) == 3
    with pytest.raises(ZeroDivisionError):
        executor.submit(lambda: 1 / 0).result(10)
    executor.shutdown()
    assert executor.submit(lambda: 4).result(10) == 4


def test_threads_are_reused_and_let_go(threads):
    idents, done = set(), threading.Event()
    for _ in range(5):
        done.clear()
        threads.run(lambda: (idents.add(threading.get_ident()), done.set()))
        done.wait(10)
        while not threads._idle:
            done.wait(0.001)
    assert len(idents) == 1
    (thread,) = [t for t in threading.enumerate() if t.ident in idents]
    threads.close()
    thread.join(10)
    assert not thread.is_alive()

"""What passes from the engine loop to a coroutine on another loop."""

import asyncio
import threading

import pytest

from ag2_parallel.gate.async_relay import AsyncRelay
from ag2_parallel.gate.relay import NOTHING_YET


@pytest.fixture
def engine():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def read(engine, put):
    """What a reader on a loop of its own gets of what `put` puts on the engine loop, and what it fails with."""

    async def all_of_it():
        relay = AsyncRelay(engine.call_soon_threadsafe, asyncio.get_running_loop())
        putting = asyncio.run_coroutine_threadsafe(put(relay), engine)
        got = []
        try:
            while (item := await relay.receive()) is not None:
                got.append(item)
        except OSError as error:
            got.append(error)
        await asyncio.wrap_future(putting)
        return got

    return asyncio.run(all_of_it())


def test_items_arrive_in_order_and_then_the_end(engine):
    async def put(relay):
        for number in range(1, 200):
            relay.put(number)
            if number % 10 == 0:
                await asyncio.sleep(0)
        relay.end()

    assert read(engine, put) == list(range(1, 200))


def test_a_failure_comes_after_what_was_not_read_or_in_place_of_it(engine):
    error = OSError("broken")

    async def after(relay):
        relay.put("first")
        relay.fail(error)

    async def at_once(relay):
        relay.put("first")
        relay.fail(error, at_once=True)

    assert read(engine, after) == ["first", error]
    assert read(engine, at_once) in ([error], ["first", error])


def test_a_slow_reader_keeps_the_writer_waiting(engine):
    part = b"x" * 100_000

    async def put(relay):
        for _ in range(20):
            await relay.put_bytes(part)
            assert relay._behind() <= 4 * len(part)
        relay.end()

    assert read(engine, put) == [part] * 20


def test_a_cancelled_reader_and_a_closed_loop_leave_the_writer_alone(engine):
    async def wait():
        relay = AsyncRelay(engine.call_soon_threadsafe, asyncio.get_running_loop())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await relay.receive()
        relay.put("late")
        assert relay.take() == "late"
        assert relay.take() is NOTHING_YET
        relay._waiter = asyncio.get_running_loop().create_future()
        return relay

    relay = asyncio.run(wait())
    relay.put("nobody reads it")
    relay.end()

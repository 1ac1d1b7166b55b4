"""The way from the loop to a waiting thread."""

import asyncio
import threading

import pytest

from ag2_parallel.gate.relay import Relay

KIB = 1024


def read_all(relay):
    read = []
    while (item := relay.get()) is not None:
        read.append(item)
    return read


def test_items_arrive_in_order_in_a_waiting_thread():
    async def run():
        relay = Relay(asyncio.get_running_loop().call_soon_threadsafe)
        reading = asyncio.create_task(asyncio.to_thread(read_all, relay))
        for number in range(100):
            relay.put(number)
            if number % 10 == 0:
                await asyncio.sleep(0)
        relay.end()
        assert await reading == list(range(100))

    asyncio.run(run())


def test_the_writer_waits_for_a_reader_that_is_far_behind_and_goes_on_when_it_has_caught_up():
    async def run():
        relay = Relay(asyncio.get_running_loop().call_soon_threadsafe)
        put = []

        async def write():
            for number in range(8):
                await relay.put_bytes(b"x" * 100 * KIB)
                put.append(number)
            relay.end()

        writing = asyncio.create_task(write())
        for _ in range(10):
            await asyncio.sleep(0)
        assert put == [0, 1], "the third chunk is past what may wait"
        assert sum(map(len, await asyncio.to_thread(read_all, relay))) == 800 * KIB
        await writing

    asyncio.run(run())


def test_a_failure_comes_after_what_was_put_before_it():
    relay = Relay(lambda message: message())
    relay.put(1)
    relay.fail(LookupError("first"))
    relay.fail(KeyError("second"))
    assert relay.get() == 1
    with pytest.raises(LookupError, match="first"):
        relay.get()


def test_a_failure_at_once_comes_in_place_of_everything():
    relay = Relay(lambda message: message())
    relay.put(1)
    relay.fail(LookupError("first"))
    relay.fail(KeyError("at once"), at_once=True)
    with pytest.raises(KeyError, match="at once"):
        relay.get()


def test_a_failure_wakes_a_waiting_thread():
    relay = Relay(lambda message: message())
    got = []

    def read():
        try:
            relay.get()
        except LookupError as error:
            got.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    relay.fail(LookupError())
    thread.join(10)
    assert len(got) == 1

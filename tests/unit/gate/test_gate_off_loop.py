"""Blocking work beside a loop."""

import asyncio
import threading

import pytest

from ag2_parallel.gate.off_loop import off_loop


def spawn(work):
    threading.Thread(target=work, daemon=True).start()


def test_the_result_and_the_error_come_back():
    def fail():
        raise LookupError("mine")

    async def run():
        assert await off_loop(spawn, lambda: 7) == 7
        with pytest.raises(LookupError, match="mine"):
            await off_loop(spawn, fail)

    asyncio.run(run())


def test_a_result_that_nobody_waits_for_is_told_to_late():
    told = []
    release, came = threading.Event(), threading.Event()

    async def run():
        waiting = asyncio.create_task(
            off_loop(spawn, lambda: release.wait(10) and "late", late=lambda result: (told.append(result), came.set()))
        )
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        release.set()
        await asyncio.to_thread(came.wait, 10)

    asyncio.run(run())
    assert told == ["late"]


def test_a_result_after_the_loop_has_closed_is_told_to_late():
    told = []
    release, came = threading.Event(), threading.Event()

    async def run():
        waiting = asyncio.create_task(
            off_loop(spawn, lambda: release.wait(10) and "late", late=lambda result: (told.append(result), came.set()))
        )
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(run())
    release.set()
    assert came.wait(10)
    assert told == ["late"]


def test_without_late_a_late_result_is_dropped():
    release, back = threading.Event(), threading.Event()

    def spawn_and_tell(work):
        spawn(lambda: (work(), back.set()))

    async def run():
        waiting = asyncio.create_task(off_loop(spawn_and_tell, lambda: release.wait(10)))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(run())
    release.set()
    assert back.wait(10)

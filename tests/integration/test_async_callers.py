"""F09, P1: async callers, callers inside a running loop, and runs inside tasks."""

import asyncio
import threading

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask, RunFailedError

pytestmark = pytest.mark.usefixtures("no_threads_left")


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, **options})


def poll(ctx):
    while True:
        ctx.check()
        threading.Event().wait(0.01)


def tasks(count=5):
    return [ParallelTask(f"t{i}", run=lambda ctx: ctx.index) for i in range(count)]


def test_run_works_inside_a_running_loop():
    """F09: as in a notebook's cell; the loop is left as it is."""

    async def cell():
        loop = asyncio.get_running_loop()
        results = runner().run(tasks())
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        return results

    assert asyncio.run(cell()).ok


def test_arun_leaves_the_loop_free():
    async def main():
        met = asyncio.Event()
        loop = asyncio.get_running_loop()
        release = threading.Event()

        async def other():
            await met.wait()
            release.set()

        def task(ctx):
            loop.call_soon_threadsafe(met.set)
            return release.wait(20)

        results, _ = await asyncio.gather(runner().a_run([ParallelTask("t", run=task)]), other())
        return results

    assert asyncio.run(main())["t"].output is True


def test_cancelling_the_awaiter_stops_the_run_and_waits_for_it():
    async def main():
        unwound = threading.Event()
        started = threading.Event()

        def task(ctx):
            started.set()
            try:
                poll(ctx)
            finally:
                unwound.set()

        running = asyncio.create_task(runner().arun([ParallelTask("t", run=task)]))
        await asyncio.to_thread(started.wait, 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert unwound.is_set()

    asyncio.run(main())


def test_astream_yields_as_they_finish():
    async def main():
        first_out = threading.Event()
        work = [ParallelTask("slow", run=lambda ctx: first_out.wait(20)), ParallelTask("fast", run=lambda ctx: 1)]
        names = []
        async for result in runner(max_workers=2).astream(work):
            names.append(result.name)
            first_out.set()
        assert names == ["fast", "slow"]

    asyncio.run(main())


def test_stream_fail_fast_yields_and_then_raises():
    def fail(ctx):
        raise ValueError("boom")

    names = []
    with pytest.raises(RunFailedError) as caught:
        names.extend(
            r.name
            for r in runner(max_workers=1, handle_errors="fail_fast").stream([ParallelTask("bad", run=fail), *tasks(2)])
        )
    assert sorted(names) == ["bad", "t0", "t1"]
    assert len(caught.value.results) == 3


def test_stream_ignore_yields_the_succeeded_only():
    def fail(ctx):
        raise ValueError("boom")

    shown = list(runner(handle_errors="ignore").stream([ParallelTask("bad", run=fail), *tasks(2)]))
    assert sorted(r.name for r in shown) == ["t0", "t1"]


def test_async_functions_run_on_a_loop_of_their_own():
    loops = []

    async def task(ctx):
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.01)
        return await asyncio.to_thread(lambda: threading.current_thread().daemon)

    results = runner(max_workers=3).run([ParallelTask(f"t{i}", run=task) for i in range(3)])
    assert [r.output for r in results.values()] == [True] * 3
    assert len(set(map(id, loops))) == 3
    assert all(loop.is_closed() for loop in loops)


def test_a_run_inside_a_task_is_stopped_with_it():
    inner_ended = threading.Event()

    def inner(ctx):
        try:
            poll(ctx)
        finally:
            inner_ended.set()

    def outer(ctx):
        return runner().run([ParallelTask("inner", run=inner)])

    result = runner(timeout=0.5, grace=3).run([ParallelTask("outer", run=outer)])["outer"]
    assert result.status == "timed_out"
    assert inner_ended.is_set()


def test_a_with_block_keeps_the_machinery():
    with runner() as kept:
        assert kept.run(tasks()).ok
        first = {thread for thread in threading.enumerate() if thread.name == "ag2-parallel-engine"}
        assert kept.run(tasks()).ok
        second = {thread for thread in threading.enumerate() if thread.name == "ag2-parallel-engine"}
    assert first == second
    assert len(first) == 1


def test_one_runner_from_several_threads():
    """S9."""
    shared, box = runner(max_workers=4), []
    with shared:
        threads = [threading.Thread(target=lambda: box.append(shared.run(tasks(50)).ok)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert box == [True] * 5

"""F17, P1: tasks read one by one, with back-pressure, from sync and async sources."""

import asyncio
import itertools
import threading

import pytest

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask, RunFailedError

pytestmark = pytest.mark.usefixtures("no_threads_left")


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "max_workers": 4, **options})


def ok(ctx):
    return ctx.name


class Source:
    """An endless or broken source that counts what was pulled and whether it was closed."""

    def __init__(self, breaks_at=None):
        self.pulled = 0
        self.closed = threading.Event()
        self._breaks_at = breaks_at

    def __iter__(self):
        try:
            for number in itertools.count():
                if number == self._breaks_at:
                    raise OSError("source broke")
                self.pulled += 1
                yield ParallelTask(f"t{number}", run=ok)
        finally:
            self.closed.set()


def test_an_endless_source_is_read_as_results_are_taken():
    source = Source()
    stream = runner().stream(source)
    first = [next(stream).name for _ in range(10)]
    assert len(set(first)) == 10
    assert source.pulled <= 10 + 2 * 4
    stream.close()
    assert source.closed.wait(10)
    assert source.pulled <= 10 + 2 * 4 + 1


def broken(ctx):
    raise ValueError("broken")


def test_a_run_that_stops_reads_no_more_of_an_endless_source():
    tasks = (ParallelTask(f"t{number}", run=broken) for number in itertools.count())
    with pytest.raises(RunFailedError) as caught:
        runner(handle_errors="fail_fast").run(tasks)
    assert len(caught.value.results) <= 10 + 2 * 4
    tasks = (ParallelTask(f"t{number}", run=ok) for number in itertools.count())
    assert runner(run_timeout=0.2).run(tasks).stop_reason == "run_timeout"


def test_nothing_starts_before_the_first_result_is_asked_for():
    source = Source()
    stream = runner().stream(source)
    stream.close()
    assert source.pulled == 0


def test_a_source_that_raises_keeps_what_there_is():
    with pytest.raises(RunFailedError, match="source broke") as caught:
        runner().run(Source(breaks_at=50))
    assert isinstance(caught.value.__cause__, OSError)
    assert len(caught.value.results) == 50
    assert caught.value.results.stop_reason == "source_error"
    assert {str(r.status) for r in caught.value.results.values()} <= {"succeeded", "skipped"}


def test_a_stream_yields_what_there_is_and_then_raises():
    names = []
    with pytest.raises(RunFailedError, match="source broke"):
        names.extend(result.name for result in runner().stream(Source(breaks_at=5)))
    assert sorted(names) == [f"t{i}" for i in range(5)]


def test_bad_tasks_become_failed_results():
    source = iter(
        [
            {"name": "a", "run": ok},
            {"name": "a", "run": ok},
            {"name": "b", "runs": ok},
            7,
            {"name": "c", "run": ok, "depends_on": ["a"]},
            {"name": "d", "run": ok, "depends_on": ["later"]},
            {"name": "later", "run": ok},
        ]
    )
    results = runner().run(source)
    assert len(results) == 7
    assert [r.name for r in results.succeeded] == ["a", "c", "later"]
    kinds = {r.name: r.error.kind for r in results.failed}
    assert kinds == dict.fromkeys(["task number 2", "b", "task number 4", "d"], "configuration")
    assert "positions 1 and 2" in results["task number 2"].error.message


def test_a_dependant_sees_its_upstream():
    def source():
        yield ParallelTask("one", run=lambda ctx: 1)
        yield ParallelTask("two", run=lambda ctx: ctx.upstream["one"].output + 1, depends_on=["one"])

    assert runner().run(source())["two"].output == 2


def test_the_feeder_reads_in_the_callers_context():
    """F28."""
    import contextvars

    tenant = contextvars.ContextVar("tenant", default="none")
    tenant.set("acme")

    def source():
        yield ParallelTask(tenant.get(), run=lambda ctx: tenant.get())

    assert runner().run(source())["acme"].output == "acme"


async def asource(count, closed):
    try:
        for number in range(count):
            await asyncio.sleep(0)
            yield {"name": f"t{number}", "run": ok}
    finally:
        closed.set()


def test_async_sources():
    async def main():
        closed = asyncio.Event()
        results = await runner().arun(asource(30, closed))
        assert [r.output for r in results.values()] == [f"t{i}" for i in range(30)]
        assert closed.is_set()

    asyncio.run(main())


def test_leaving_an_async_stream_closes_the_source():
    async def main():
        closed = asyncio.Event()
        stream = runner().astream(asource(10_000, closed))
        names = [(await anext(stream)).name for _ in range(5)]
        await stream.aclose()
        assert len(set(names)) == 5
        assert closed.is_set()

    asyncio.run(main())


def test_an_async_source_needs_the_async_calls():
    closed = threading.Event()
    with pytest.raises(ConfigurationError, match="arun"):
        runner().run(asource(1, closed))
    with pytest.raises(ConfigurationError, match="astream"):
        runner().stream(asource(1, closed))


def test_a_broken_async_source():
    async def broken():
        yield {"name": "t", "run": ok}
        raise OSError("async source broke")

    async def main():
        with pytest.raises(RunFailedError, match="async source broke") as caught:
            await runner().arun(broken())
        assert len(caught.value.results) == 1

    asyncio.run(main())

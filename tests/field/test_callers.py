"""F09, F17: agents run from wherever the caller is, and are read as they are needed."""

import asyncio
import inspect
import itertools
import threading

import pytest
from agents import HEAD, finished, runner, script, served

from ag2_parallel import ParallelTask, RunFailedError, run_agents_parallel

pytestmark = pytest.mark.usefixtures("no_threads_left")

NOTEBOOK = """
import gc
server = Address(sys.argv[1])
async def cell():
    host = asyncio.get_running_loop()
    before = (type(host).run_until_complete, asyncio.run, asyncio.get_event_loop_policy(), asyncio.all_tasks())
    task = {"name": "t", "agent_config": agent_config(server, name="a"), "prompt": "hi"}
    print(run_agents_parallel([task])["t"].output)
    print(ParallelAgentRunner().run([ParallelTask("t", "two", agent=ok(server))])["t"].output)
    print([r.output for r in ParallelAgentRunner().stream([ParallelTask("t", "three", agent=assistant(server))])])
    print((await ParallelAgentRunner().arun([task]))["t"].output)
    assert before == (type(host).run_until_complete, asyncio.run, asyncio.get_event_loop_policy(), asyncio.all_tasks())
    pending = cell_again()
    try: host.run_until_complete(pending)
    except RuntimeError as error: print(error)
    finally: pending.close()
async def cell_again(): pass
asyncio.run(cell())
gc.collect()
"""


def test_a_notebooks_cell_may_call_run(line, tmp_path):
    """F09: nothing of the host's loop is patched, and no coroutine is left unawaited."""
    with served() as server:
        out, err = finished(script(tmp_path, NOTEBOOK, server.base_url, line=line))
    assert out.splitlines() == [
        "echo: hi",
        "echo: two",
        "['echo: three']",
        "echo: hi",
        "This event loop is already running",
    ]
    assert not [line for line in err.splitlines() if not line.startswith("ag2-parallel: ")]
    assert "nest_asyncio" not in HEAD + err


UVLOOP = """
import uvloop
server = Address(sys.argv[1])
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
runner = ParallelAgentRunner(40, progress=False, timeout=30, rate_limits=[RateLimit(requests=500, per=1)])
def tasks(): return [ParallelTask(f"t{i}", "x", agent=ok(server)) for i in range(40)]
async def host():
    inside, awaited, streamed = runner.run(tasks()), await runner.arun(tasks()), [r async for r in runner.astream(tasks())]
    return type(asyncio.get_running_loop()).__module__, inside.ok, awaited.ok, {r.output for r in streamed}
print(runner.run(tasks()).ok, asyncio.run(host()))
"""


def test_a_program_that_has_another_event_loop(line, tmp_path):
    with served() as server:
        out, err = finished(script(tmp_path, UVLOOP, server.base_url, line=line))
    assert out == f"True ('uvloop', True, True, { {'echo: x'} })\n"
    assert err == ""


def test_run_inside_a_running_loop_may_be_repeated_and_mixed(line):
    """F09."""

    async def cell(server):
        tasks = [ParallelTask(f"t{i}", f"{i}", agent=line.ok(server)) for i in range(3)]
        both = await asyncio.gather(
            asyncio.to_thread(run_agents_parallel, tasks, progress=False), runner().arun(tasks), runner().arun(tasks)
        )
        return [*both, runner().run(tasks)]

    with served() as server:
        for results in asyncio.run(cell(server)):
            assert [result.output for result in results.values()] == ["echo: 0", "echo: 1", "echo: 2"]


class Source:
    def __init__(self, line, server, breaks_at=None):
        self.pulled = 0
        self.closed = threading.Event()
        self._agent = line.assistant(server)
        self._breaks_at = breaks_at

    def __iter__(self):
        try:
            for number in itertools.count():
                if number == self._breaks_at:
                    raise OSError("source broke")
                self.pulled += 1
                yield ParallelTask(f"t{number}", f"{number}", agent=self._agent)
        finally:
            self.closed.set()

    async def aiter(self):
        for task in self:
            await asyncio.sleep(0)
            yield task


@pytest.mark.parametrize("handle_errors", ["collect", "fail_fast", "ignore"])
def test_an_endless_source_is_pulled_no_further_than_needed(line, handle_errors):
    """F17."""
    with served() as server:
        source = Source(line, server)
        stream = runner(max_workers=4, handle_errors=handle_errors).stream(source)
        first = [next(stream) for _ in range(10)]
        assert all(result.output == f"echo: {result.index}" for result in first)
        assert source.pulled <= 10 + 2 * 4
        stream.close()
        assert source.closed.wait(10)
        assert source.pulled <= 10 + 2 * 4 + 1
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
        after = server.ledger.count
        assert after <= source.pulled


def test_an_endless_async_source(line):
    """F17."""

    async def main(server):
        source = Source(line, server)
        stream = runner(max_workers=4).astream(source.aiter())
        names = [(await anext(stream)).name for _ in range(10)]
        await stream.aclose()
        return source, names

    with served() as server:
        source, names = asyncio.run(main(server))
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
    assert len(set(names)) == 10
    assert source.pulled <= 10 + 2 * 4 + 1


def test_a_source_that_breaks_keeps_what_was_done(line):
    """F17."""
    with served() as server:
        with pytest.raises(RunFailedError, match="source broke") as caught:
            runner(max_workers=4).run(Source(line, server, breaks_at=50))
        assert isinstance(caught.value.__cause__, OSError)
        results = caught.value.results
        assert len(results) == 50
        assert {result.output for result in results.succeeded} == {f"echo: {r.index}" for r in results.succeeded}
        assert {str(result.status) for result in results.values()} <= {"succeeded", "skipped"}
        yielded = []
        with pytest.raises(RunFailedError, match="source broke"):
            yielded.extend(runner(max_workers=4).stream(Source(line, server, breaks_at=12)))
        assert len(yielded) == 12


def test_the_entry_points_say_which_is_for_async_code():
    """F09."""
    assert inspect.iscoroutinefunction(runner().arun)
    assert not inspect.iscoroutinefunction(runner().run)

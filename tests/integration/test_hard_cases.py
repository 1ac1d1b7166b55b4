"""What must not hang a run, lose a result or let a key out, whatever a task, a source, a hook or an observer does."""

import asyncio
import gc
import io
import logging
import sys
import threading

import pytest

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask, RetryPolicy, RunFailedError
from ag2_parallel.events import RunFinished

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("no_threads_left")]

KEY = "plain-secret-value-of-nobody"


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "max_workers": 4, **options})


def ok(ctx):
    return ctx.name


def boom(ctx):
    raise ValueError("boom")


def named(*names, run=ok, **fields):
    return [ParallelTask(name, run=run, **fields) for name in names]


class Wordless(Exception):
    @property
    def response(self):
        raise RuntimeError("no words")

    def __str__(self):
        raise RuntimeError("no words either")


class TestBrokenWords:
    @pytest.mark.parametrize("redact", [lambda text: 1 / 0, lambda text: None])
    def test_a_redact_that_breaks_shows_nothing(self, redact):
        results = runner(redact=redact).run(named("a", run=boom))
        assert results["a"].status == "failed"
        assert "boom" not in repr(results["a"].error)

    def test_an_exception_that_cannot_be_described(self):
        def fail(ctx):
            raise Wordless

        result = runner().run(named("a", run=fail))["a"]
        assert result.status == "failed"
        assert result.error.type

    def test_a_judge_that_leaves(self):
        def leave(error):
            raise SystemExit

        assert runner(retry=RetryPolicy(2, on=["agent"])).run(named("a", run=boom))["a"].attempts == 2
        result = runner().run(
            [ParallelTask("a", run=boom, retry=RetryPolicy(2, on=lambda e: leave(e) if e.traceback else True))]
        )
        assert result["a"].status == "failed"

    def test_a_leftover_that_leaves(self):
        async def task(ctx):
            async def left():
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    raise SystemExit from None

            ctx.context["kept"] = asyncio.create_task(left())
            await asyncio.sleep(0)

        assert runner().run(named("a", run=task))["a"].status in {"succeeded", "failed"}


class TestStuckSources:
    @pytest.fixture
    def source(self):
        release = threading.Event()

        def tasks():
            yield ParallelTask("a", run=ok)
            release.wait(20)
            yield ParallelTask("late", run=ok)

        yield tasks()
        release.set()

    def test_the_run_limit_holds(self, source):
        results = runner(run_timeout=0.3).run(source)
        assert [r.name for r in results.values()] == ["a"]
        assert results.stop_reason == "run_timeout"

    def test_a_stream_can_be_closed(self, source):
        stream = runner().stream(source)
        assert next(stream).name == "a"
        stream.close()

    def test_a_handle_can_be_cancelled(self, source):
        handle = runner().start(source)
        handle.cancel()
        assert len(handle.results()) <= 1

    def test_an_async_source_too(self):
        async def source():
            yield ParallelTask("a", run=ok)
            await asyncio.Event().wait()

        results = asyncio.run(runner(run_timeout=0.3).arun(source()))
        assert results.stop_reason == "run_timeout"

    def test_an_async_source_that_cannot_be_iterated(self):
        class Broken:
            def __aiter__(self):
                raise OSError("no iterator")

        with pytest.raises(RunFailedError, match="no iterator"):
            asyncio.run(runner().arun(Broken()))

    def test_a_resource_that_is_never_there(self):
        release = threading.Event()
        results = runner(run_timeout=0.3, resources={"db": lambda: release.wait(20)}).run(named("a", "b"))
        release.set()
        assert [str(r.status) for r in results.values()] == ["skipped", "skipped"]

    def test_a_source_cannot_submit_to_its_own_run(self):
        box = []

        def source():
            yield ParallelTask("a", run=ok)
            try:
                box[0].submit(ParallelTask("b", run=ok))
            except Exception as error:
                box.append(str(error))

        started = threading.Event()

        def gated():
            started.wait(10)
            yield from source()

        box.append(runner().start(gated()))
        started.set()
        assert list(box[0].results()) == ["a"]
        assert "yield them" in box[1]


class TestEnds:
    def test_a_run_that_is_open_when_its_with_block_is_left(self):
        with runner() as kept:
            handle = kept.start(named("a", "b"))
        assert handle.results().ok

    def test_a_with_block_left_inside_a_task(self):
        kept = runner()
        kept.__enter__()
        assert kept.run(named("a", run=lambda ctx: kept.__exit__(None, None, None))).ok

    def test_results_from_several_threads(self):
        handle, box = runner().start(named("a", "b", "c")), []
        threads = [threading.Thread(target=lambda: box.append(len(handle.results()))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert box == [3] * 4

    def test_a_handle_and_a_stream_that_are_dropped(self):
        handle = runner().start(named("a"))
        del handle
        stream = runner().stream(named("a", "b"))
        next(stream)
        del stream
        gc.collect()

    def test_a_resource_that_leaves_badly(self, caplog):
        class Leaves:
            def close(self):
                raise SystemExit

        assert runner(resources={"x": Leaves}).run(named("a")).ok

    def test_observers_whose_names_break(self):
        class Broken:
            def __call__(self, event):
                raise ValueError("observer")

            def __repr__(self):
                raise ValueError("no name")

        events = list(runner(observers=[Broken()]).events(named("a")))
        assert isinstance(events[-1], RunFinished)

    def test_observers_from_a_generator_are_told(self):
        seen = []
        runner(observers=(o for o in [seen.append])).run(named("a"))
        assert seen

    def test_a_console_nobody_reads(self):
        class Gone(io.StringIO):
            def write(self, text):
                raise BrokenPipeError

        before, sys.stdout = sys.stdout, Gone()
        try:
            assert runner(console="grouped").run(named("a", run=lambda ctx: print("hello"))).ok
        finally:
            sys.stdout = before

    def test_a_host_that_prints_all_the_time(self):
        stop, errors = threading.Event(), []

        def host():
            while not stop.is_set():
                try:
                    print("x", file=sys.stdout)
                except Exception as error:
                    errors.append(error)

        thread = threading.Thread(target=host)
        thread.start()
        for _ in range(15):
            runner(console="prefix").run(named("a", run=lambda ctx: print("y")))
        stop.set()
        thread.join(10)
        assert errors == []


class TestOddValues:
    @pytest.mark.parametrize("value", [None, 5])
    def test_a_context_that_is_no_mapping_any_more(self, value):
        def task(ctx):
            ctx.context = value

        results = runner().run([*named("odd", run=task), *named("b")])
        assert results.ok
        assert results["odd"].context == {}

    def test_circles(self):
        def task(ctx):
            ctx.context["me"] = ctx.context
            return ctx.context

        results = runner().run(named("a", "b", run=task))
        assert results.ok
        results.to_json()

    def test_stand_in_names_never_collide(self):
        tasks = [{"name": "task number 2", "run": ok}, {"nme": "x"}, {"name": "a" * 300}, {"name": "a" * 301}]
        results = runner().run(iter(tasks))
        assert len(results) == len(list(results)) == 4
        assert results["task number 2"].ok

    def test_a_result_that_is_gone_is_a_failure_not_a_gap(self):
        tasks = (ParallelTask(f"t{i}", run=ok) for i in range(1100))
        late = ParallelTask("late", run=lambda ctx: list(ctx.upstream), depends_on=["t0"])
        results = runner().run(each for each in (*tasks, late))
        assert results["late"].error.kind == "configuration"
        assert "not kept any more" in results["late"].error.message

    def test_numbers_beyond_every_float(self):
        with pytest.raises(ConfigurationError, match="timeout"):
            runner(timeout=10**400)
        with pytest.raises(ConfigurationError, match="did you mean 'timeout'"):
            RetryPolicy(2, on=["tiemout"])
        with pytest.raises(ConfigurationError, match="neither a list"):
            RetryPolicy(2, on=5)

    def test_verdicts_of_any_type(self):
        tasks = [ParallelTask("yes", run=ok, accept=lambda r: 1), ParallelTask("no", run=ok, accept=lambda r: "")]
        results = runner().run(tasks)
        assert results["yes"].ok
        assert results["no"].error.kind == "rejected"

    def test_an_async_verdict_and_an_async_answer(self):
        async def accept(result):
            return result.output == "a" or "no"

        assert runner().run([ParallelTask("a", run=ok, accept=accept)]).ok

    def test_a_text_that_repeats_a_prefix_is_no_trap(self):
        """Linear: ten times the text takes about ten times as long, not a hundred."""
        import time

        from ag2_parallel.redaction import masked_text

        def cost(count):
            start = time.process_time()
            masked_text("sk-" * count)
            return time.process_time() - start

        assert cost(20_000) < 60 * max(cost(2_000), 0.0005)


class TestKeys:
    def test_keys_stay_in_no_text(self, caplog):
        config = {"llm_config": {"config_list": [{"model": "m", "api_key": KEY, "base_url": f"http://h/{KEY}"}]}}
        task = ParallelTask("a", f"use {KEY}", agent_config=config)
        assert KEY not in repr(task)
        with pytest.raises(ConfigurationError) as caught:
            runner().run([ParallelTask("a", run=ok, group=5), ParallelTask("sk-live-1234567890abcdef" * 9, run=ok)])
        assert "sk-live-1234567890abcdef" not in str(caught.value)

        def source():
            raise OSError("refused for sk-live-1234567890abcdef")
            yield

        with pytest.raises(RunFailedError) as failed:
            runner().run(source())
        assert "sk-live" not in str(failed.value)
        assert failed.value.__cause__ is None

    def test_learnt_keys_are_masked_in_data_too(self):
        options = {"llm_config": {"config_list": [{"model": "m", "api_key": KEY}]}}
        results = runner(**options).run(named("a", run=lambda ctx: {"found": [KEY]}))
        assert KEY not in results.to_json()

    def test_logs_of_broken_observers_and_resources(self, caplog):
        def observer(event):
            raise ValueError("key sk-live-1234567890abcdef")

        with caplog.at_level(logging.DEBUG):
            runner(observers=[observer]).run(named("a"))
        assert "sk-live-1234567890abcdef" not in caplog.text
        assert "ValueError" in caplog.text

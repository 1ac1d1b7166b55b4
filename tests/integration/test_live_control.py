"""P2, P8: a run that is looked after while it goes on, and its merged stream of events."""

import asyncio
import contextlib
import json
import sys
import threading

import pytest

from ag2_parallel import Ag2ParallelError, ConfigurationError, ParallelAgentRunner, ParallelTask, RunFailedError
from ag2_parallel.events import AttemptStarted, RunFinished, RunStarted, TaskFinished, TaskReported

pytestmark = pytest.mark.usefixtures("no_threads_left")


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "max_workers": 4, **options})


def ok(ctx):
    return ctx.name


def named(*names, run=ok, **fields):
    return [ParallelTask(name, run=run, **fields) for name in names]


class TestHandle:
    def test_tasks_are_added_and_futures_have_their_results(self):
        handle = runner().start(named("a"))
        future = handle.submit({"name": "b", "run": ok})
        after = handle.submit(ParallelTask("c", run=lambda ctx: ctx.upstream["a"].output + "c", depends_on=["a"]))
        assert future.result(20).output == "b"
        assert after.result(20).output == "ac"
        results = handle.results()
        assert list(results) == ["a", "b", "c"]
        assert handle.results() is results

    def test_a_bad_task_is_refused_and_the_run_goes_on(self):
        with runner().start(named("a")) as handle:
            for bad in ({"name": "a", "run": ok}, {"name": "x"}, {"name": "y", "run": ok, "depends_on": ["later"]}):
                with pytest.raises(ConfigurationError):
                    handle.submit(bad)
            assert handle.submit({"name": "x", "run": ok}).result(20).ok
        assert list(handle.results()) == ["a", "x"]

    def test_after_the_results_nothing_is_taken(self):
        handle = runner().start()
        assert len(handle.results()) == 0
        with pytest.raises(Ag2ParallelError, match="no more tasks"):
            handle.submit({"name": "a", "run": ok})

    def test_pause_and_resume(self):
        started, go = threading.Event(), threading.Event()

        def hold(ctx):
            started.set()
            go.wait(20)

        with runner(max_workers=1).start(named("holds", run=hold)) as handle:
            started.wait(20)
            handle.pause()
            second = handle.submit({"name": "second", "run": ok})
            go.set()
            while handle.status().settled < 1:
                threading.Event().wait(0.005)
            status = handle.status()
            assert (status.paused, status.running, status.waiting, status.added) == (True, 0, 1, 2)
            assert not second.done()
            handle.resume()
            assert second.result(20).ok

    def test_the_number_of_workers_can_change(self):
        barrier = threading.Barrier(3)
        with runner(max_workers=1).start(named("a", "b", "c", run=lambda ctx: barrier.wait(20))) as handle:
            handle.set_max_workers(3)
            assert handle.status().max_workers == 3
        assert handle.results().ok
        with pytest.raises(ConfigurationError):
            handle.set_max_workers(0)

    def test_more_workers_read_further_ahead_in_a_source(self):
        barrier = threading.Barrier(6)
        tasks = (ParallelTask(f"t{i}", run=lambda ctx: barrier.wait(20)) for i in range(6))
        with runner(max_workers=1).start(tasks) as handle:
            handle.set_max_workers(6)
        assert handle.results().ok

    def test_a_run_that_is_being_stopped_takes_no_more_tasks(self):
        started, go = threading.Event(), threading.Event()

        def hold(ctx):
            started.set()
            go.wait(20)

        handle = runner().start(named("holds", run=hold))
        started.wait(20)
        handle.cancel()
        with pytest.raises(Ag2ParallelError, match="no more tasks"):
            handle.submit({"name": "late", "run": ok})
        go.set()
        assert list(handle.results()) == ["holds"]

    def test_every_future_is_done_however_the_run_is_cancelled_meanwhile(self):
        for _ in range(10):
            handle, futures, submitting = runner().start(), [], threading.Event()

            def submit(handle=handle, futures=futures, submitting=submitting):
                with contextlib.suppress(Ag2ParallelError):
                    for number in range(1_000):
                        futures.append(handle.submit({"name": f"t{number}", "run": ok}))
                        submitting.set()

            thread = threading.Thread(target=submit)
            thread.start()
            submitting.wait(20)
            handle.cancel()
            results = handle.results()
            thread.join(20)
            of_the_run = [f.result(20).name for f in futures if f.exception(20) is None]
            assert of_the_run == list(results)

    def test_the_status_can_be_asked_while_the_run_ends(self):
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for _ in range(25):
                handle, over, asked = runner().start(named("a")), threading.Event(), []

                def ask(handle=handle, over=over, asked=asked):
                    while not over.is_set():
                        asked.append(handle.status())

                threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
                for thread in threads:
                    thread.start()
                handle.results()
                over.set()
                for thread in threads:
                    thread.join(20)
                    assert not thread.is_alive()
        finally:
            sys.setswitchinterval(before)

    def test_cancel(self):
        started = threading.Event()

        def poll(ctx):
            started.set()
            while True:
                ctx.check()
                threading.Event().wait(0.01)

        handle = runner(max_workers=1).start(named("running", "waiting", run=poll))
        started.wait(20)
        handle.cancel()
        results = handle.results()
        assert [str(r.status) for r in results.values()] == ["cancelled", "skipped"]
        assert results.stop_reason == "cancelled"
        assert handle.status().finished

    def test_a_block_that_raises_cancels(self):
        seen = []

        def poll(ctx):
            try:
                while True:
                    ctx.check()
                    threading.Event().wait(0.01)
            finally:
                seen.append("unwound")

        def block():
            with runner().start(named("a", run=poll)) as handle:
                while not handle.status().running:
                    threading.Event().wait(0.005)
                raise KeyError

        with pytest.raises(KeyError):
            block()
        assert seen == ["unwound"]

    def test_a_source_may_be_started_with(self):
        handle = runner().start(iter(named("a", "b")))
        assert handle.submit({"name": "c", "run": ok}).result(20).index == 2
        assert list(handle.results()) == ["a", "b", "c"]

    def test_fail_fast_raises_from_results(self):
        def fail(ctx):
            raise ValueError("boom")

        handle = runner(handle_errors="fail_fast").start(named("bad", run=fail))
        with pytest.raises(RunFailedError, match="boom"):
            handle.results()

    def test_callbacks_of_futures_do_not_run_on_the_engine(self):
        names, called = [], threading.Event()
        with runner().start() as handle:
            future = handle.submit({"name": "a", "run": ok})
            future.add_done_callback(lambda f: (names.append(threading.current_thread().name), called.set()))
            assert called.wait(20)
        assert "ag2-parallel-engine" not in names


class TestEvents:
    def test_one_merged_stream_from_start_to_end(self):
        def talk(ctx):
            ctx.report(f"hello from {ctx.name}")

        events = list(runner().events(named("a", "b", run=talk)))
        assert isinstance(events[0], RunStarted)
        assert isinstance(events[-1], RunFinished)
        assert {e.message for e in events if isinstance(e, TaskReported)} == {"hello from a", "hello from b"}
        assert {(e.task, e.attempt) for e in events if isinstance(e, AttemptStarted)} == {("a", 1), ("b", 1)}
        assert sum(isinstance(e, TaskFinished) for e in events) == 2
        assert all(json.dumps(e.to_dict()) for e in events)

    def test_leaving_the_loop_stops_the_run(self):
        ended = threading.Event()

        def poll(ctx):
            try:
                while True:
                    ctx.check()
                    threading.Event().wait(0.01)
            finally:
                ended.set()

        events = runner().events(named("a", run=poll))
        for event in events:
            if isinstance(event, AttemptStarted):
                break
        events.close()
        assert ended.is_set()

    def test_it_raises_at_the_end_what_run_would(self):
        def fail(ctx):
            raise ValueError("boom")

        seen = []
        with pytest.raises(RunFailedError, match="boom"):
            seen.extend(runner(handle_errors="fail_fast").events(named("bad", run=fail)))
        assert isinstance(seen[-1], RunFinished)

    def test_async(self):
        async def source():
            for task in named("a", "b", "c"):
                yield task

        async def main():
            return [event async for event in runner().aevents(source())]

        events = asyncio.run(main())
        assert sum(isinstance(e, TaskFinished) for e in events) == 3
        assert isinstance(events[-1], RunFinished)

    def test_a_slow_loop_loses_progress_events_only(self):
        def talk(ctx):
            for number in range(30_000):
                ctx.report(str(number))

        events, first = runner().events(named("a", run=talk)), threading.Event()
        seen = []
        for event in events:
            if not first.is_set():
                first.wait(1)
                first.set()
            seen.append(event)
        assert isinstance(seen[-1], RunFinished)
        assert len([e for e in seen if isinstance(e, TaskFinished)]) == 1

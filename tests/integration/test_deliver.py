"""`deliver`: results one at a time, none kept, with the stages of an interrupted run."""

import itertools
import signal
import threading

import pytest

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask, RunFailedError, RunInterrupted

pytestmark = pytest.mark.usefixtures("no_threads_left")


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "max_workers": 4, **options})


def ok(ctx):
    return ctx.name


def broken(ctx):
    raise ValueError("broken")


def tasks(count, run=ok):
    return (ParallelTask(f"t{number}", run=run) for number in range(count))


def test_every_result_is_handed_over_once_and_none_is_kept():
    seen, threads = [], set()

    def take(result):
        seen.append(result.name)
        threads.add(threading.current_thread())

    totals = runner().deliver(tasks(200), take, run_id="mine")
    assert sorted(seen) == sorted(f"t{number}" for number in range(200))
    assert len(threads) == 1
    assert threading.main_thread() not in threads
    assert (len(totals), totals.run_id, totals.stop_reason, totals.metrics["success_rate"]) == (0, "mine", None, 1.0)


def test_a_slow_reader_holds_the_source_back():
    pulled = itertools.count()
    last = [0]
    first, go_on = threading.Event(), threading.Event()

    def source():
        for number in pulled:
            if number == 500:
                return
            last[0] = number
            yield ParallelTask(f"t{number}", run=ok)

    def take(_result):
        first.set()
        assert go_on.wait(30)

    thread = threading.Thread(target=runner().deliver, args=(source(), take))
    thread.start()
    assert first.wait(30)
    assert last[0] <= 1 + 2 * 4
    go_on.set()
    thread.join(30)
    assert last[0] == 499


def test_an_error_of_the_reader_stops_the_run_and_is_raised():
    taken = []

    def take(result):
        taken.append(result)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        runner().deliver(tasks(1000), take)
    assert len(taken) == 1


def test_ignored_failures_are_handed_over_too():
    seen = []
    runner(handle_errors="ignore").deliver([*tasks(2), ParallelTask("bad", run=broken)], seen.append)
    assert sorted(str(result.status) for result in seen) == ["failed", "succeeded", "succeeded"]


def test_what_fails_as_a_whole_is_raised_with_what_failed():
    seen = []
    with pytest.raises(RunFailedError) as caught:
        runner(handle_errors="fail_fast", max_workers=1).deliver(
            [ParallelTask("bad", run=broken), *tasks(3)], seen.append
        )
    assert caught.value.results["bad"].error.message == "broken"
    assert len(seen) == 4

    def source():
        yield from tasks(3)
        raise OSError("source broke")

    seen.clear()
    with pytest.raises(RunFailedError, match="source broke"):
        runner().deliver(source(), seen.append)
    assert len(seen) == 3


def test_bad_input_is_refused_before_anything_starts():
    with pytest.raises(ConfigurationError):
        runner().deliver([{"name": "a"}], print)

    async def source():
        yield ParallelTask("a", run=ok)

    with pytest.raises(ConfigurationError, match="async"):
        runner().deliver(source(), print)


def test_interrupts_have_the_stages_of_a_run():
    seen = {}
    started = threading.Barrier(3)

    def slow(ctx):
        started.wait(30)
        while True:
            ctx.check()
            threading.Event().wait(0.01)

    def interrupt(event):
        if event.type == "RunStopping" and not event.stopped_running:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def begin():
        started.wait(30)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=begin).start()
    with pytest.raises(RunInterrupted) as caught:
        runner(max_workers=2, observers=[interrupt]).deliver(
            tasks(5, slow), lambda result: seen.__setitem__(result.name, str(result.status))
        )
    assert caught.value.results.stop_reason == "interrupted"
    assert (seen["t0"], seen["t1"]) == ("cancelled", "cancelled")
    assert set(seen.values()) == {"cancelled", "skipped"}

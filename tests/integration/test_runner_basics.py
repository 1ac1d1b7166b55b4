"""S1, S2, S7, S8, S10, S12, S17, S19 to S23, S26 on plain functions: what a user sees of a run."""

import asyncio
import json
import logging
import threading

import pytest

from ag2_parallel import (
    ParallelAgentRunner,
    ParallelTask,
    RetryPolicy,
    RunFailedError,
    TaskStatus,
    run_agents_parallel,
)
from ag2_parallel.testing import RecordingObserver, ScriptedAgent

pytestmark = pytest.mark.usefixtures("no_threads_left")


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, **options})


def ok(ctx):
    return f"done {ctx.name}"


def broken(ctx):
    raise ValueError(f"{ctx.name} is broken")


def named(*names, run=ok, **fields):
    return [ParallelTask(name, run=run, **fields) for name in names]


class TestCollect:
    def test_every_task_has_one_result_in_input_order(self):
        results = runner(max_workers=3).run([*named("a", "b"), *named("bad", run=broken), *named("c")])
        assert list(results) == ["a", "b", "bad", "c"]
        assert [r.index for r in results.values()] == [0, 1, 2, 3]
        assert [r.name for r in results.succeeded] == ["a", "b", "c"]
        assert results["bad"].status is TaskStatus.FAILED
        assert results.errors["bad"].type == "ValueError"
        assert "bad is broken" in results.errors["bad"].message
        assert "in broken" in results.errors["bad"].traceback
        assert results[0].output == "done a"
        assert [r.name for r in results[1:3]] == ["b", "bad"]
        assert not results.ok

    def test_an_empty_list_is_an_empty_result(self):
        results = runner().run([])
        assert len(results) == 0
        assert results.ok
        assert results.metrics["success_rate"] is None

    def test_the_function_form(self):
        assert run_agents_parallel(named("a"), max_workers=1, progress=False)["a"].output == "done a"

    def test_a_tuple_and_dicts(self):
        assert runner().run(({"name": "a", "run": ok},))["a"].ok

    def test_tasks_run_at_once(self):
        """All eight meet at a barrier that lets none pass before the last has come."""
        barrier = threading.Barrier(8)
        results = runner(max_workers=8).run(named(*"abcdefgh", run=lambda ctx: barrier.wait(20)))
        assert results.ok
        assert results.metrics["concurrency"]["peak"] == 8

    def test_never_more_at_once_than_workers(self):
        """S21, F39."""
        lock, running, peak = threading.Lock(), [0], [0]

        def count(ctx):
            with lock:
                running[0] += 1
                peak[0] = max(peak[0], running[0])
            threading.Event().wait(0.005)
            with lock:
                running[0] -= 1

        assert runner(max_workers=3).run(named(*map(str, range(60)), run=count)).ok
        assert peak[0] == 3

    def test_a_returned_exception_is_a_value(self):
        error = ValueError("a value")
        assert runner().run(named("a", run=lambda ctx: error))["a"].output is error

    @pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
    def test_any_other_base_exception_is_that_tasks_failure(self, error):
        def leave(ctx):
            raise error

        results = runner().run([*named("leaves", run=leave), *named("b")])
        assert results["leaves"].status == "failed"
        assert results["leaves"].error.kind == "agent"
        assert results["b"].ok


class TestOtherStrategies:
    def test_ignore_leaves_failures_out_and_logs_them(self, caplog):
        with caplog.at_level(logging.WARNING, "ag2_parallel"):
            results = runner(handle_errors="ignore").run([*named("a"), *named("bad", run=broken)])
        assert list(results) == ["a"]
        assert [r.name for r in results.ignored] == ["bad"]
        assert "bad" in results.errors
        assert results.metrics["success_rate"] == 0.5
        assert "bad is broken" in caplog.text

    def test_fail_fast_stops_the_rest_and_raises_with_results(self):
        started = threading.Event()

        def hang(ctx):
            started.set()
            while True:
                ctx.check()
                threading.Event().wait(0.01)

        def fail(ctx):
            started.wait(20)
            raise ValueError("boom")

        tasks = [*named("hangs", run=hang), *named("bad", run=fail), *named("never")]
        with pytest.raises(RunFailedError, match="boom") as caught:
            runner(max_workers=2, handle_errors="fail_fast").run(tasks)
        results = caught.value.results
        assert [str(r.status) for r in results.values()] == ["cancelled", "failed", "skipped"]
        assert [r.stop_reason for r in results.values()] == ["fail_fast", "error", "fail_fast"]
        assert results.stop_reason == "fail_fast"
        assert results["hangs"].ended == "unwound"

    def test_fail_fast_counts_a_failure_only_after_its_retries(self):
        results = runner(handle_errors="fail_fast", retry=2).run(
            [ParallelTask("flaky", agent=ScriptedAgent([ValueError("once"), "fine"]))]
        )
        assert results["flaky"].output == "fine"
        assert results["flaky"].attempts == 2

    def test_raise_for_failures(self):
        results = runner().run(named("bad", run=broken))
        with pytest.raises(RunFailedError, match="1 of 1"):
            results.raise_for_failures()


class TestRetries:
    def test_attempts_are_logged(self):
        agent = ScriptedAgent([ValueError("one"), ValueError("two"), "three"])
        result = runner(retry=3).run([ParallelTask("t", agent=agent)])["t"]
        assert result.output == "three"
        assert [record.status for record in result.attempt_log] == ["failed", "failed", "succeeded"]
        assert [record.error.message for record in result.attempt_log[:2]] == ["one", "two"]
        assert agent.calls == [("t", 1), ("t", 2), ("t", 3)]

    def test_an_accept_that_refuses_is_a_failure_that_may_be_retried(self):
        tasks = [
            ParallelTask("t", agent=ScriptedAgent(["bad", "good"]), accept=lambda r: r.output == "good" or "not good"),
            ParallelTask("never", agent=ScriptedAgent("bad"), accept=lambda r: False),
        ]
        results = runner(retry=2).run(tasks)
        assert results["t"].output == "good"
        assert results["t"].attempt_log[0].error.kind == "rejected"
        assert "not good" in results["t"].attempt_log[0].error.message
        assert results["never"].status == "failed"

    def test_a_users_function_decides_on_the_tasks_own_thread(self):
        threads = []

        def judge(error):
            threads.append(threading.current_thread().name)
            return "again" in error.message

        agents = {"again": ScriptedAgent([ValueError("again"), "fine"]), "never": ScriptedAgent([ValueError("no")])}
        tasks = [ParallelTask(name, agent=agent, retry=RetryPolicy(3, on=judge)) for name, agent in agents.items()]
        results = runner().run(tasks)
        assert [r.attempts for r in results.values()] == [2, 1]
        assert "ag2-parallel-engine" not in threads


class TestDependencies:
    def test_a_task_sees_what_it_depends_on(self):
        """S17, P13."""
        tasks = [
            ParallelTask(
                "sum", run=lambda ctx: sum(r.output for r in ctx.upstream.values()), depends_on=["one", "two"]
            ),
            ParallelTask("one", run=lambda ctx: 1),
            ParallelTask("two", run=lambda ctx: 2),
        ]
        assert runner().run(tasks)["sum"].output == 3

    def test_dependants_of_a_failure_are_skipped_and_say_why(self):
        tasks = [*named("bad", run=broken), *named("next", depends_on=["bad"]), *named("last", depends_on=["next"])]
        results = runner().run(tasks)
        assert [r.name for r in results.skipped] == ["next", "last"]
        assert '"bad"' in results["next"].error.message
        assert '"next"' in results["last"].error.message
        assert results["last"].stop_reason == "dependency"

    def test_no_barrier(self):
        """The dependant of a quick task starts while a slow one still runs."""
        seen = threading.Event()
        tasks = [
            ParallelTask("slow", run=lambda ctx: seen.wait(20)),
            ParallelTask("quick", run=ok),
            ParallelTask("after quick", run=lambda ctx: seen.set(), depends_on=["quick"]),
        ]
        assert runner(max_workers=2).run(tasks)["slow"].output is True

    def test_priorities(self):
        """P18: higher first, ties in input order."""
        order = []
        tasks = [ParallelTask(str(p), run=lambda ctx: order.append(ctx.name), priority=p) for p in (0, 5, 1, 9)]
        runner(max_workers=1).run(tasks)
        assert order == ["9", "5", "1", "0"]


class TestContext:
    def test_context_is_copied_for_each_attempt(self):
        """S12: changes of one task reach no other, and not the caller's mapping."""
        shared = {"list": []}

        def note(ctx):
            ctx.context["list"].append(ctx.name)
            return ctx.context["list"]

        results = runner().run([ParallelTask(n, run=note, context=shared) for n in "abc"])
        assert [r.output for r in results.values()] == [["a"], ["b"], ["c"]]
        assert shared == {"list": []}

    def test_directory_is_the_tasks_own(self, tmp_path):
        """S20."""

        def write(ctx):
            (ctx.directory / "file.txt").write_text(ctx.name)
            return str(ctx.directory)

        results = runner(directory=tmp_path).run(named("a/../b", "c", run=write), run_id="mine")
        assert results["c"].directory == tmp_path / "mine" / "c-1"
        assert results[0].directory.parent == tmp_path / "mine"
        assert results["c"].directory.stat().st_mode & 0o777 == 0o700

    def test_resources_are_opened_once_and_closed_last(self):
        log = []

        class Database:
            def close(self):
                log.append("closed")

        def use(ctx):
            log.append(ctx.resources["db"])

        def make():
            log.append("opened")
            return Database()

        assert runner(resources={"db": make}).run(named("a", "b", run=use)).ok
        assert log[0] == "opened"
        assert log[-1] == "closed"
        assert log[1] is log[2]

    def test_a_resource_that_cannot_be_opened_fails_the_run_with_every_task_skipped(self):
        def make():
            raise ConnectionError("no database")

        with pytest.raises(RunFailedError, match="no database") as caught:
            runner(resources={"db": make}).run(named("a", "b"))
        assert [str(r.status) for r in caught.value.results.values()] == ["skipped", "skipped"]

    def test_unique_names_and_remaining(self):
        """S19."""
        results = runner(timeout=50).run(named("a", "b", run=lambda ctx: (ctx.unique_name("doc x"), ctx.remaining())))
        assert results["a"].output[0] == "doc_x_0_1"
        assert results["b"].output[0] == "doc_x_1_1"
        assert 40 < results["a"].output[1] <= 50


class TestResults:
    def test_metrics_and_times(self):
        """S23."""
        results = runner(max_workers=2).run(named("a", "b", "c"))
        metrics = results.metrics
        assert metrics["success_rate"] == 1
        assert metrics["task_seconds"] >= metrics["longest"] > 0
        assert metrics["wall"] > 0
        result = results["a"]
        assert result.started_at.tzinfo is not None
        assert result.finished_at >= result.started_at
        assert result.queued >= 0
        assert 0 <= result.waited <= result.duration

    def test_groups_are_counted_apart(self):
        tasks = [*named("a", "b", group="x"), *named("c", group="y", run=broken), *named("d")]
        groups = runner().run(tasks).metrics["groups"]
        assert {name: (group["tasks"], group["succeeded"]) for name, group in groups.items()} == {
            "x": (2, 2),
            "y": (1, 0),
        }
        assert groups["x"]["usage"]["calls"] == 0

    def test_json_pandas_and_html(self, tmp_path):
        results = runner().run([*named("<b>"), *named("bad", run=broken)])
        results.to_json(tmp_path / "r.json")
        plain = json.loads((tmp_path / "r.json").read_text())
        assert [row["status"] for row in plain["results"]] == ["succeeded", "failed"]
        assert (tmp_path / "r.json").stat().st_mode & 0o777 == 0o600
        assert list(results.to_pandas()["name"]) == ["<b>", "bad"]
        assert "&lt;b&gt;" in results._repr_html_()
        assert repr(results) == "RunResults(1 succeeded, 1 failed)"

    def test_events_in_order(self):
        seen = RecordingObserver()
        runner(observers=[seen], retry=2).run([ParallelTask("t", agent=ScriptedAgent([ValueError("x"), "y"]))])
        assert seen.names == [
            "RunStarted",
            "AttemptStarted",
            "AttemptEnded",
            "TaskRetrying",
            "AttemptStarted",
            "AttemptEnded",
            "TaskFinished",
            "RunFinished",
        ]
        assert all(json.dumps(event.to_dict()) for event in seen.events)

    def test_a_broken_observer_is_dropped_and_harms_nobody(self, caplog):
        calls = []

        def observer(event):
            calls.append(event)
            raise RuntimeError("I am broken")

        assert runner(observers=[observer]).run(named("a", "b")).ok
        assert len(calls) == 1
        assert "I am broken" in caplog.text

"""F06, F10, F11: one result for each task, in input order, under its own name, whatever fails."""

import json
import threading
import time

import pytest
from agents import broken_factory, run, runner, served, statuses

from ag2_parallel import DuplicateTaskError, ParallelTask, RunFailedError

pytestmark = pytest.mark.usefixtures("no_threads_left")

SAME_NAMES = [("a", "a"), ("a", "A"), ("caf\u00e9", "cafe\u0301"), ("a", "a "), ("a", " a"), ("stra\u00dfe", "STRASSE")]


@pytest.mark.parametrize(("first", "second"), SAME_NAMES)
def test_doubled_names_are_refused_before_any_agent_is_built(first, second):
    """F06."""
    built = []
    tasks = [ParallelTask(name, f"{i}", agent=lambda: built.append(1)) for i, name in enumerate([first, "b", second])]
    with pytest.raises(DuplicateTaskError, match=r"positions 1 and 3") as caught:
        run(tasks)
    assert second in str(caught.value)
    assert built == []


@pytest.mark.parametrize(("first", "second"), SAME_NAMES)
def test_doubled_names_in_a_source_read_one_by_one(line, first, second):
    """F06: no row replaces another."""
    with served() as server:
        results = run(ParallelTask(n, n, agent=line.ok(server)) for n in (first, "b", second))
        assert len(results) == 3
        assert statuses(results) == ["succeeded", "succeeded", "failed"]
        assert "positions 1 and 3" in results[2].error.message
        assert results[first].output == f"echo: {first}"
        assert sorted(request.text for request in server.ledger.requests) == sorted([first, "b"])


class TestFailures:
    """F10."""

    def tasks(self, line, server, breaks, hang_for=None):
        def boom(ctx):
            assert server.ledger.wait_for(lambda ledger: any(r.text == "hang" for r in ledger.requests))
            return breaks()

        return [
            ParallelTask("a", "one", agent=line.ok(server)),
            ParallelTask("b", "two", agent=line.ok(server)),
            ParallelTask("hang", "hang", agent=line.ok(server), priority=9, timeout=hang_for),
            ParallelTask("boom", "x", agent=boom, depends_on=["a", "b"]),
            ParallelTask("late", "late", agent=line.ok(server), depends_on=["a"], priority=-1),
        ]

    @pytest.fixture(params=["in the factory", "in the run", "at the model"])
    def breaks(self, line, request):
        return {
            "in the factory": broken_factory(ValueError("boom")),
            "in the run": line.raises(ValueError("boom")),
            "at the model": line.raises(ConnectionError("boom")),
        }[request.param]

    def test_collect(self, line, breaks):
        with served() as server:
            results = run(self.tasks(line, server, breaks, hang_for=1), max_workers=2)
        assert statuses(results) == ["succeeded", "succeeded", "timed_out", "failed", "succeeded"]
        assert [results["a"].output, results["b"].output] == ["echo: one", "echo: two"]
        assert "boom" in results["boom"].error.message

    def test_ignore(self, line, breaks):
        with served() as server:
            results = run(self.tasks(line, server, breaks, hang_for=1), max_workers=2, handle_errors="ignore")
        assert list(results) == ["a", "b", "late"]
        assert {r.name for r in results.ignored} == set(results.errors) == {"hang", "boom"}

    def test_fail_fast(self, line, breaks):
        with served() as server:
            with pytest.raises(RunFailedError, match="boom") as caught:
                run(self.tasks(line, server, breaks), timeout=30, max_workers=2, handle_errors="fail_fast")
            assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        results = caught.value.results
        assert statuses(results) == ["succeeded", "succeeded", "cancelled", "failed", "skipped"]
        assert [results["a"].output, results["b"].output] == ["echo: one", "echo: two"]

    def test_the_report_of_a_stopped_run_can_be_kept(self, line, breaks, tmp_path):
        with served() as server, pytest.raises(RunFailedError) as caught:
            run(self.tasks(line, server, breaks), max_workers=2, handle_errors="fail_fast")
        caught.value.results.to_json(tmp_path / "r.json")
        rows = json.loads((tmp_path / "r.json").read_text())["results"]
        assert [row["output"] for row in rows[:2]] == ["echo: one", "echo: two"]
        assert [row["status"] for row in rows[2:]] == ["cancelled", "failed", "skipped"]

    def test_a_stuck_agent_does_not_hold_the_finished_ones_back(self, line):
        with served() as server:
            tasks = [ParallelTask("stuck", agent=line.sleepy(1.5)), ParallelTask("a", "one", agent=line.ok(server))]
            stream = runner(timeout=0.4, grace=0.1, max_workers=2).stream(tasks)
            begun = time.monotonic()
            assert [str(result.status) for result in stream] == ["succeeded", "timed_out"]
            assert time.monotonic() - begun < 1.4


def slow_ones_first(line, server):
    """300 tasks that end in another order than they began."""
    agent = line.assistant(server)
    return [ParallelTask(f"t{i}", f"after {(i * 37 % 50) / 1000} echo {i}", agent=agent) for i in range(300)]


def test_results_are_in_input_order_whatever_ends_first(line):
    """F11."""
    with served() as server:
        results = run(slow_ones_first(line, server), max_workers=32)
    assert [result.output for result in results.values()] == [f"echo {i}" for i in range(300)]
    assert [(result.name, result.index) for result in results.values()] == [(f"t{i}", i) for i in range(300)]
    assert [results[i].name for i in range(300)] == list(results)


def test_by_completion_each_row_says_whose_it_is(line):
    """F11."""
    release = threading.Event()

    def hold(ctx):
        release.wait(20)
        return line.ok(server)(ctx)

    with served() as server:
        tasks = [ParallelTask("first", "echo 0", agent=hold), *slow_ones_first(line, server)[1:60]]
        seen = []
        for result in runner(max_workers=8).stream(tasks):
            seen.append(result)
            if len(seen) == 59:
                release.set()
    assert seen[-1].name == "first"
    assert sorted(result.index for result in seen) == list(range(60))
    for result in seen[:-1]:
        assert result.output == f"echo {result.index}"
        assert result.name == f"t{result.index}"

"""Runs with a journal, as their users see them: what is kept, what goes on, what is refused."""

import sqlite3
import time

import pytest

from ag2_parallel import (
    ConfigurationError,
    JournalLockedError,
    ParallelAgentRunner,
    ParallelTask,
    Template,
)
from ag2_parallel.testing import RecordingObserver

BROKEN = set()
"""Names of tasks that fail."""

ran = []


@pytest.fixture(autouse=True)
def _afresh():
    BROKEN.clear()
    ran.clear()


def work(ctx):
    ran.append(ctx.name)
    if ctx.name in BROKEN:
        raise ValueError("broken")
    return f"{ctx.name}: {ctx.prompt}"


def tasks(names="abcdef", prompt="p", **fields):
    return [ParallelTask(name, prompt, run=work, **fields) for name in names]


def numbered():
    """Found by its name."""
    return tasks("xyz")


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def runner(journal):
    return ParallelAgentRunner(journal=journal, progress=False)


def statuses(results):
    return {name: str(result.status) for name, result in results.items()}


def test_what_succeeded_stands_and_the_rest_runs_again(runner, journal):
    """F34."""
    BROKEN.update("bd")
    runner.run(tasks(), run_id="one")
    BROKEN.clear()
    ran.clear()
    results = runner.resume(journal, tasks())
    assert sorted(ran) == ["b", "d"]
    assert results.ok
    assert [result.output for result in results.values()] == [f"{name}: p" for name in "abcdef"]
    assert results.metrics["resumed"] == {"kept": 4, "again": 2, "changed": [], "removed": []}


def test_run_with_the_same_run_id_does_the_same(runner):
    runner.run(tasks(), run_id="one")
    ran.clear()
    assert runner.run(tasks(), run_id="one").ok
    assert ran == []


def test_another_run_id_is_another_run(runner):
    runner.run(tasks(), run_id="one")
    runner.run(tasks(), run_id="two")
    assert sorted(ran) == sorted("abcdef" * 2)


@pytest.mark.parametrize(("rerun", "again"), [("failed", ["b"]), ("interrupted", ["f"]), ("none", [])])
def test_rerun_narrows_what_runs_again(runner, journal, rerun, again):
    """F34: `f` was skipped, since it depends on `b`."""
    BROKEN.add("b")
    given = [*tasks("abc"), *tasks("f", depends_on=["b"])]
    runner.run(given, run_id="one")
    ran.clear()
    runner.resume(journal, given, rerun=rerun)
    assert ran == [name for name in again if name != "f"]  # its dependency failed again, or still


def test_a_changed_task_runs_again_and_is_named(runner, journal, caplog):
    """F34."""
    caplog.set_level("INFO", "ag2_parallel")
    runner.run(tasks(), run_id="one")
    ran.clear()
    given = [*tasks("ab"), *tasks("c", prompt="another"), *tasks("def")]
    results = runner.resume(journal, given)
    assert ran == ["c"]
    assert results["c"].output == "c: another"
    assert "1 would do something else than before and run again (c)" in caplog.text


def test_a_changed_task_can_be_refused_before_anything_starts(runner, journal):
    runner.run(tasks(), run_id="one")
    ran.clear()
    with pytest.raises(ConfigurationError, match="a, b, c"):
        runner.resume(journal, tasks(prompt="another"), changed="error")
    assert ran == []
    assert runner.resume(journal, tasks()).ok  # the run was let go of


def test_changed_tasks_of_a_source_that_are_refused_keep_their_results(runner, journal):
    assert list(runner.stream((each for each in tasks("abc")), run_id="one"))
    ran.clear()
    refused = runner.resume(journal, (each for each in [*tasks("a", prompt="another"), *tasks("bc")]), changed="error")
    assert [str(result.status) for result in refused.values()] == ["failed", "succeeded", "succeeded"]
    assert "would do something else" in refused["a"].error.message
    undone = runner.resume(journal, (each for each in tasks("abc")), changed="error")
    assert [result.output for result in undone.values()] == ["a: p", "b: p", "c: p"]
    assert ran == []


def test_removed_added_and_reordered_tasks(runner, journal):
    """F34."""
    runner.run(tasks("abc"), run_id="one")
    ran.clear()
    results = runner.resume(journal, tasks("dca"))
    assert ran == ["d"]
    assert [(name, result.index) for name, result in results.items()] == [("d", 0), ("c", 1), ("a", 2)]
    assert results.metrics["resumed"]["removed"] == ["b"]
    assert runner.resume(journal, tasks("abcd")).metrics["resumed"]["kept"] == 4


def test_repeats_of_one_prompt_under_different_names_are_different_tasks(runner, journal):
    runner.run(tasks("ab"), run_id="one")
    ran.clear()
    runner.resume(journal, tasks("abc"))
    assert ran == ["c"]


def test_dependants_of_what_stands_get_its_result(runner, journal):
    BROKEN.add("b")
    given = [*tasks("a"), *tasks("b", Template("after {{ upstream.a.output }}"), depends_on=["a"])]
    runner.run(given, run_id="one")
    BROKEN.clear()
    assert runner.resume(journal, given)["b"].output == "b: after a: p"


def test_the_same_for_tasks_that_are_read_one_by_one(runner):
    BROKEN.add("b")
    given = [*tasks("a"), *tasks("b", Template("after {{ upstream.a.output }}"), depends_on=["a"]), *tasks("c")]
    list(runner.stream(iter(given), run_id="one"))
    BROKEN.clear()
    ran.clear()
    results = {result.name: result.output for result in runner.stream(iter(given), run_id="one")}
    assert (ran, results) == (["b"], {"a": "a: p", "b": "b: after a: p", "c": "c: p"})


@pytest.mark.parametrize("way", ["run", "stream", "deliver", "handle", "map"])
def test_a_source_all_of_whose_results_stand_gives_them_all(runner, journal, way):
    many = [f"t{i:03}" for i in range(60)]
    runner.run(iter(tasks(many)), run_id="one")
    ran.clear()
    results = {}
    match way:
        case "run":
            results = dict(runner.run(iter(tasks(many)), run_id="one"))
        case "stream":
            results = {result.name: result for result in runner.stream(iter(tasks(many)), run_id="one")}
        case "deliver":
            runner.deliver(iter(tasks(many)), lambda result: results.setdefault(result.name, result), run_id="one")
        case "handle":
            with runner.start(iter(tasks(many)), run_id="one") as handle:
                results = dict(handle.results())
        case "map":
            rows = ({"id": name} for name in many)
            results = dict(runner.map(None, rows, "p", "{{ id }}", run=work, run_id="one"))
    assert {name: result.output for name, result in results.items()} == {name: f"{name}: p" for name in many}
    assert ran == []


def test_tasks_named_by_an_attribute_need_not_be_passed_again(runner, journal):
    runner.run(f"{__name__}:numbered", run_id="one")
    ran.clear()
    assert list(runner.resume(journal)) == ["x", "y", "z"]
    assert ran == []


def test_live_tasks_must_be_passed_again_and_the_error_says_so(runner, journal):
    runner.run(tasks(), run_id="one")
    with pytest.raises(ConfigurationError, match=r"pass them: runner.resume\(journal, tasks\)"):
        runner.resume(journal)


def test_a_run_that_is_not_there_is_named(runner, journal):
    runner.run(tasks(), run_id="one")
    with pytest.raises(ConfigurationError, match="no run 'two'"):
        runner.resume(journal, tasks(), "two")


def test_a_run_is_held_by_one_runner_at_a_time(runner, journal):
    with runner.start(tasks("a"), run_id="one"), pytest.raises(JournalLockedError, match="this process"):
        ParallelAgentRunner(journal=journal, progress=False).run(tasks(), run_id="one")
    assert runner.run(tasks("a"), run_id="one").ok


def test_a_handle_takes_tasks_whose_results_stand(runner):
    runner.run(tasks("ab"), run_id="one")
    ran.clear()
    with runner.start(run_id="one") as handle:
        futures = [handle.submit(task) for task in tasks("abc")]
    assert [future.result().output for future in futures] == ["a: p", "b: p", "c: p"]
    assert ran == ["c"]


def test_what_stands_is_an_event_of_its_own(journal):
    seen = RecordingObserver()
    ParallelAgentRunner(journal=journal, progress=False).run(tasks("ab"), run_id="one")
    ParallelAgentRunner(journal=journal, progress=False, observers=[seen]).run(tasks("abc"), run_id="one")
    assert sorted((event.type, event.task) for event in seen.events if event.type in {"TaskKept", "TaskFinished"}) == [
        ("TaskFinished", "c"), ("TaskKept", "a"), ("TaskKept", "b")
    ]  # fmt: skip


def test_what_is_out_of_the_ordinary_is_kept_as_events(runner, journal):
    def once(ctx):
        ctx.report("looking")
        if ctx.attempt == 1:
            raise ValueError("once")

    ParallelAgentRunner(journal=journal, retry=2, progress=False).run([*tasks("ab"), ParallelTask("r", run=once)])
    with sqlite3.connect(journal) as db:
        kept = [kind for (kind,) in db.execute("SELECT type FROM events ORDER BY event")]
    assert kept == ["RunStarted", "TaskReported", "TaskRetrying", "TaskReported", "RunFinished"]


def test_a_result_is_written_down_before_it_is_published(journal):
    counts = []
    for result in ParallelAgentRunner(1, journal=journal, progress=False).stream(tasks(), run_id="one"):
        with sqlite3.connect(f"file:{journal}?mode=ro", uri=True) as db:
            [(count,)] = db.execute("SELECT count(*) FROM results").fetchall()
        counts.append((result.index + 1, count))
    assert all(published <= written for published, written in counts)


def test_a_validated_output_is_of_its_type_again(runner, journal):
    given = [ParallelTask("n", run=lambda ctx: "[1, 2]", output_type=list[int])]
    runner.run(given, run_id="one")
    assert runner.resume(journal, given)["n"].output == [1, 2]


def test_the_longest_start_first(journal):
    seconds = {"b": 0.6, "c": 0.25}

    def timed(ctx):
        ran.append(ctx.name)
        if ctx.name in seconds:
            time.sleep(seconds[ctx.name])

    given = [ParallelTask(name, run=timed) for name in "abc"]
    ParallelAgentRunner(1, journal=journal, progress=False).run(given)
    ran.clear()
    results = ParallelAgentRunner(1, journal=journal, order="longest_first", progress=False).run(given)
    assert ran == ["b", "c", "a"]
    assert list(results) == ["a", "b", "c"]
    assert results.metrics["wall"] >= results.metrics["makespan_bound"] >= results.metrics["longest"]


def test_longest_first_needs_a_journal():
    with pytest.raises(ConfigurationError, match="needs a journal"):
        ParallelAgentRunner(order="longest_first")


SECRET = "sk-test-0123456789abcdef"


def test_no_secret_is_in_the_file(journal, tmp_path):
    """F33."""

    def leaks(ctx):
        print(SECRET)
        raise ValueError(f"the key {SECRET} is wrong")

    config = {"config_list": [{"model": "m", "api_key": SECRET, "base_url": "http://127.0.0.1:1"}]}
    runner = ParallelAgentRunner(journal=journal, llm_config=config, model_retry=1, progress=False)
    runner.run([ParallelTask("t", f"say {SECRET}"), ParallelTask("u", run=leaks)], run_id="one")
    blob = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert SECRET.encode() not in blob
    assert b"U0stdGVzdC0wMTIzNDU2Nzg5YWJjZGVm" not in blob

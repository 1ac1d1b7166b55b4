"""What every backend has to do, seen from the caller's side. See `backend_tasks` for what the tasks do."""

import time

import backend_tasks
import pytest
from backend_tasks import Verdict
from ray_here import ON_RAY

from ag2_parallel import (
    ParallelAgentRunner,
    ParallelTask,
    ProcessBackend,
    RayBackend,
    RetryPolicy,
    RunFailedError,
    TaskStatus,
)
from ag2_parallel.testing import RecordingObserver

pytestmark = pytest.mark.usefixtures("no_threads_left")


@pytest.fixture(params=["local", "process", *ON_RAY])
def backend(request):
    if request.param == "ray":
        request.getfixturevalue("ray_of_this_machine")
    return {"local": "local", "process": ProcessBackend(workers=2), "ray": RayBackend(actors=1)}[request.param]


@pytest.fixture
def run(backend, tmp_path):
    def run(tasks, **options):
        given = {"progress": False, "max_workers": 4, "directory": tmp_path, "backend": backend, **options}
        return ParallelAgentRunner(**given).run(tasks)

    return run


def task(name, work, prompt="x", **fields):
    return ParallelTask(name, prompt, run=f"backend_tasks:{work}", **fields)


def status(results):
    return {name: str(result.status) for name, result in results.items()}


def test_answers_in_input_order(run):
    results = run([task(f"t{i}", "echo_later" if i % 2 else "echo", str(i)) for i in range(40)])
    assert [result.output for result in results.values()] == [f"echo {i}" for i in range(40)]
    assert {result.ended for result in results.values()} == {"returned"}
    assert {result.attempts for result in results.values()} == {1}


def test_outputs_keep_their_types(run):
    results = run([task("a", "verdict", "four"), task("b", "nothing"), task("c", "colour")])
    assert results["a"].output == Verdict(4)
    assert results["b"].output is None
    assert results["c"].output is backend_tasks.Colour.RED


def test_failures_are_values_with_type_message_and_traceback(run):
    results = run([task("bad", "fails", "luck"), task("exits", "ends_the_interpreter"), task("good", "echo")])
    assert status(results) == {"bad": "failed", "exits": "failed", "good": "succeeded"}
    error = results["bad"].error
    assert (error.type, error.message, error.kind) == ("LookupError", "no luck", "agent")
    assert "in fails" in error.traceback
    assert results["exits"].error.type == "SystemExit"


def test_an_import_path_that_leads_nowhere_fails_its_task_alone(run):
    results = run([ParallelTask("bad", run="backend_tasks:gone"), task("good", "echo")])
    assert status(results) == {"bad": "failed", "good": "succeeded"}
    assert "gone" in results["bad"].error.message


def test_closures_and_lambdas(run):
    secret = 41
    results = run([ParallelTask("a", run=lambda ctx: secret + 1), ParallelTask("b", lambda ctx: ctx.name, run=echo_it)])
    assert results["a"].output == 42
    assert results["b"].output == "b"


def echo_it(ctx):
    return ctx.prompt


def test_whole_tasks_are_tried_again(run):
    results = run([task("a", "fails_once", retry=2), task("b", "fails", retry=RetryPolicy(2, on=lambda error: False))])
    assert (results["a"].output, results["a"].attempts) == ("attempt 2", 2)
    assert results["b"].attempts == 1


def test_dependencies(run):
    results = run([task("a", "number", "1"), task("b", "number", "2"), task("c", "adds_up", depends_on=["a", "b"])])
    assert results["c"].output == 3


def test_each_attempt_has_its_own_context(run):
    shared = {"seen": []}
    results = run([task(f"t{i}", "changes_context", context=shared) for i in range(5)])
    assert [result.output for result in results.values()] == [[f"t{i}"] for i in range(5)]
    assert results["t3"].context == {"seen": ["t3"]}
    assert shared == {"seen": []}


def test_accept_and_metadata(run):
    refused = task("a", "echo", accept=lambda result: "too short", metadata={"k": 1})
    results = run([refused, task("b", "echo", accept=lambda result: result.output == "echo x")])
    assert (results["a"].error.kind, results["a"].error.message) == ("rejected", "too short")
    assert results["a"].metadata == {"k": 1}
    assert results["b"].ok


def test_limits_of_tasks_and_attempts(run):
    tasks = [
        task("task", "waits", timeout=0.3),
        task("attempt", "waits", attempt_timeout=0.3),
        task("idle", "waits", idle_timeout=0.3),
    ]
    results = run(tasks, max_workers=3)
    assert status(results) == {"task": "timed_out", "attempt": "timed_out", "idle": "timed_out"}
    assert {name: result.stop_reason for name, result in results.items()} == {
        "task": "deadline",
        "attempt": "attempt_deadline",
        "idle": "idle",
    }
    assert all(0.2 < result.duration < 0.3 + 0.25 + 1 for result in results.values())
    assert {result.ended for result in results.values()} <= {"unwound", "cut"}


def test_a_run_limit_cancels_what_runs_and_skips_what_waits(backend):
    with ParallelAgentRunner(2, backend=backend, run_timeout=4.0, progress=False) as runner:
        runner.run([task("first", "echo")])  # starting processes counts in the run's time
        results = runner.run([task(f"t{i}", "waits") for i in range(6)])
    assert results.stop_reason == "run_timeout"
    assert [str(result.status) for result in results.values()] == ["cancelled"] * 2 + ["skipped"] * 4


def test_a_stopped_task_unwinds(run):
    results = run([task("t", "cleans_up", timeout=0.3)])
    assert results["t"].ended == "unwound"
    assert (results["t"].directory / "cleaned").read_text(encoding="utf-8") == "yes"


def test_fail_fast(run):
    with pytest.raises(RunFailedError) as caught:
        run(
            [task("bad", "fails"), task("long", "waits"), task("after", "echo")],
            handle_errors="fail_fast",
            max_workers=2,
        )
    assert status(caught.value.results)["bad"] == "failed"
    assert caught.value.results["long"].status in {TaskStatus.CANCELLED, TaskStatus.SKIPPED}


def test_directories(run, tmp_path):
    results = run([task("t", "writes", "text")])
    assert str(results["t"].directory) == results["t"].output
    assert (results["t"].directory / "file").read_text(encoding="utf-8") == "text"
    assert tmp_path in results["t"].directory.parents


def test_events_and_reports(run, caplog):
    seen = RecordingObserver()
    with caplog.at_level("INFO", "ag2_parallel"):
        run([task("t", "reports")], observers=[seen])
    told = [event.type for event in seen.events if event.task == "t"]
    assert set(told[:2]) == {"AttemptStarted", "TaskReported"}
    assert told[2:] == ["AttemptEnded", "TaskFinished"]
    report = next(event for event in seen.events if event.type == "TaskReported")
    assert (report.message, report.index, report.attempt) == ("hello from t", 0, 1)
    record = next(record for record in caplog.records if "hello from t" in record.message)
    assert (record.task, record.attempt) == ("t", 1)


def test_resources(run):
    results = run([task(f"t{i}", "uses_resource") for i in range(4)], resources={"db": backend_tasks.open_database})
    assert {result.output for result in results.values()} == {"x from the database"}


def test_a_resource_that_cannot_be_opened_fails_the_run(run):
    with pytest.raises(RunFailedError, match="the database is down") as caught:
        run([task("t", "uses_resource")], resources={"db": backend_tasks.broken_resource})
    assert not caught.value.results["t"].ok


def test_the_console_of_a_task_is_its_own(run, capsys):
    results = run([task(f"t{i}", "prints") for i in range(3)], console="grouped")
    assert [result.console for result in results.values()] == [f"printed by t{i}\n" for i in range(3)]
    assert capsys.readouterr().out.count("printed by t1") == 1


def test_secrets_do_not_leave(run):
    config = {"api_key": "a-secret-of-mine"}
    results = run([ParallelTask("t", run=lambda ctx: config["api_key"])], llm_config={"config_list": [config]})
    assert results["t"].output == "***"


def test_many_runs_in_one_block(backend):
    with ParallelAgentRunner(max_workers=4, backend=backend, progress=False) as runner:
        for _ in range(3):
            results = runner.run([task(f"t{i}", "echo") for i in range(8)])
            assert len(results.succeeded) == 8
            assert len(list(runner.stream(task(f"s{i}", "echo") for i in range(8)))) == 8


def test_tasks_of_an_endless_source(backend):
    def source():
        for i in range(10**9):
            yield task(f"t{i}", "echo", str(i))

    with ParallelAgentRunner(max_workers=4, backend=backend, progress=False) as runner:
        stream = runner.stream(source())
        assert len([next(stream) for _ in range(20)]) == 20
        stream.close()


def test_a_run_is_cancelled(backend):
    with ParallelAgentRunner(max_workers=2, backend=backend, progress=False) as runner:
        handle = runner.start([task("a", "waits"), task("b", "waits"), task("c", "echo")])
        while handle.status().running < 2:
            time.sleep(0.01)
        handle.cancel()
        results = handle.results()
    assert status(results) == {"a": "cancelled", "b": "cancelled", "c": "skipped"}

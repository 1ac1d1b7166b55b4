"""The trace of a task: what it holds, what it costs, and that it survives JSON."""

import json
import threading
import time

from ag2_parallel import RunResults
from ag2_parallel.core.outcome import AttemptLog
from ag2_parallel.ports import Draft, Snapshot
from ag2_parallel.redaction import Redactor
from ag2_parallel.results import ParallelTaskResult, TaskStatus
from ag2_parallel.spans import MOST_SPANS, UNFINISHED, Span, Spans, Trace
from ag2_parallel.usage import Usage


class Ticking:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_times_are_seconds_from_the_attempts_start():
    clock = Ticking()
    trace = Trace(clock)
    clock.now += 2
    span = trace.begin("call", "model")
    clock.now += 3
    trace.end(span, "HTTP 200")
    assert trace.so_far() == ((Span("call", "model", 2, 5, "HTTP 200"),), 0)


def test_what_has_not_ended_is_there_and_says_so():
    clock = Ticking()
    trace = Trace(clock)
    span = trace.begin("tool", "search")
    clock.now += 1
    assert trace.so_far()[0] == (Span("tool", "search", 0, 1, UNFINISHED),)
    trace.end(span)
    trace.end(span)
    assert trace.so_far().kept == (Span("tool", "search", 0, 1),)


def test_the_longest_are_kept_and_the_others_counted():
    clock = Ticking()
    trace = Trace(clock)
    for number in range(3 * MOST_SPANS):
        span = trace.begin("call", str(number))
        clock.now += 5 if number == 7 else 0.001
        trace.end(span)
    kept, dropped = trace.so_far()
    assert len(kept) <= 2 * MOST_SPANS
    assert len(kept) + dropped == 3 * MOST_SPANS
    assert any(span.label == "7" for span in kept)


def test_spans_from_many_threads_at_once_are_all_there():
    trace = Trace(time.monotonic)

    def work():
        for _ in range(100):
            trace.end(trace.begin("tool", "t"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(trace.so_far()[0]) == 800


def test_a_span_costs_less_than_five_microseconds_of_processor_time():
    def cost():
        trace = Trace(time.monotonic)
        before = time.process_time()
        for _ in range(2000):
            trace.end(trace.begin("call", "model"), "HTTP 200")
        return (time.process_time() - before) / 2000

    assert min(cost() for _ in range(20)) < 5e-6


def snapshot(*spans, dropped=0):
    return Snapshot(draft=Draft(), usage=Usage(), waited=0, spans=Spans(spans, dropped))


def test_attempts_and_backoff_stand_on_the_tasks_own_time():
    log = AttemptLog()
    log.started(1, 50.0, None)
    log.decided(1, TaskStatus.FAILED, None, snapshot(Span("call", "m", 1, 2), dropped=3), 54.0)
    log.backs_off(2.0, 54.0)
    log.started(2, 57.0, None)
    log.decided(2, TaskStatus.SUCCEEDED, None, snapshot(Span("call", "m", 1, 2)), 60.0)
    assert log.trace(10.0) == (
        Span("attempt", "attempt 1", 0, 4, "failed"),
        Span("call", "m", 1, 2),
        Span("backoff", "before the next attempt", 4, 6),
        Span("attempt", "attempt 2", 7, 10, "succeeded"),
        Span("call", "m", 8, 9),
    )
    assert log.dropped_spans == 3


def test_a_task_of_many_attempts_keeps_its_longest_spans():
    log = AttemptLog()
    log.started(1, 0.0, None)
    many = [Span("call", "m", n, n + 0.1) for n in range(MOST_SPANS + 5)]
    log.decided(1, TaskStatus.SUCCEEDED, None, snapshot(*many), 5000.0)
    assert len(log.trace(5000.0)) == MOST_SPANS
    assert log.trace(5000.0)[0].kind == "attempt"
    assert log.dropped_spans == 6


def test_results_survive_json_with_their_traces(tmp_path):
    trace = (Span("attempt", "attempt 1", 0, 1.25, "succeeded"), Span("call", "m", 0.1, 1.2, "HTTP 200"))
    result = ParallelTaskResult(
        name="a", index=0, status=TaskStatus.SUCCEEDED, trace=trace, usage=Usage(calls=1, cost=None).for_model("m")
    )
    results = RunResults([result], run_id="r", metrics={"wall": 1.5})
    again = RunResults.from_json(results.to_json(tmp_path / "r.json"))
    assert again["a"].trace == trace
    assert again["a"].usage == result.usage
    assert again.to_dict() == results.to_dict()
    for path in (tmp_path / "r.json", str(tmp_path / "r.json")):
        assert RunResults.from_json(path).to_dict() == json.loads(results.to_json())
    assert "trace" not in repr(result)


def test_secrets_in_labels_and_details_are_masked():
    key = "sk-live-abcdef1234567890"
    redactor = Redactor()
    redactor.learn({"api_key": "hidden-without-a-shape"})
    span = Span("tool", f"tool of {key}", 0, 1, "hidden-without-a-shape")
    result = ParallelTaskResult(name="a", index=0, status=TaskStatus.SUCCEEDED, trace=(span,))
    assert redactor.result(result).trace == (Span("tool", "tool of ***", 0, 1, "***"),)
    assert result.to_dict()["trace"][0]["label"] == "tool of ***"

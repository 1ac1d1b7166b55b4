"""What a progress display knows of a run."""

import io

import pytest

from ag2_parallel import Usage, events
from ag2_parallel.reporting.log_lines import ProgressLines
from ag2_parallel.reporting.run_view import RunView
from ag2_parallel.reporting.words import clock, tokens


class Told:
    """A view that is told of one task, at times set by hand."""

    def __init__(self, total=10):
        self.view = RunView()
        self.now = 0.0
        self.view.take(events.RunStarted(run_id="r", total=total, max_workers=4), 0.0)

    def __call__(self, event, index=0, **fields):
        self.view.take(
            event(run_id="r", task=f"t{index}", index=index, attempt=fields.pop("attempt", 1), **fields), self.now
        )
        return self

    def finish(self, index=0, status="succeeded", usage=None):
        return self(
            events.TaskFinished,
            index,
            status=status,
            stop_reason=None,
            duration=1.0,
            error=None,
            usage=usage or Usage(),
        )

    @property
    def step(self):
        return self.view.running[0].step(self.now)


CALL = {"call": 1, "endpoint": "e"}


def test_the_step_of_a_task_follows_its_events():
    told = Told()(events.AttemptStarted)
    assert told.step == "runs"
    told(events.AgentActive, agent="Physician", tool=None)(events.ModelCallQueued, model="m", **CALL)
    assert told.step == "Physician asks m"
    told.now = 4.0
    assert told.step == "waits for a limit, 4 s"
    told(events.ModelCallAdmitted, model="m", waited=4.0, **CALL)(
        events.ModelCallStarted, model="m", try_number=1, **CALL
    )
    assert told.step == "Physician asks m"
    told(events.ModelCallRetrying, reason="HTTP 429", delay=9.0, **CALL)
    told.now = 6.0
    assert told.step == "HTTP 429, asks again in 7 s"
    told(events.ModelCallFinished, model="m", status="200", duration=1.0, usage=Usage(prompt_tokens=40), **CALL)
    told(events.AgentActive, agent="Physician", tool="lookup")
    assert told.step == "Physician tool lookup"
    assert told.view.tokens == 40
    told(events.TaskRetrying, delay=3.0, error="e")
    assert told.step == "attempt 1 failed, starts again in 3 s"
    told(events.AttemptStarted, attempt=2)(events.TaskReported, message="reads")
    assert told.step == "reads (attempt 2)"
    told(events.AttemptStopping, reason="deadline")
    assert told.step == "is stopped: deadline (attempt 2)"
    told.finish(usage=Usage(prompt_tokens=70, cost=0.5))
    assert told.view.running == {}
    assert (told.view.tokens, told.view.cost, told.view.done, told.view.bad) == (70, 0.5, 1, 0)


def test_a_step_that_is_told_before_the_start_is_not_lost():
    told = Told()(events.TaskReported, message="early")(events.AttemptStarted)
    assert told.step == "early"


def test_what_is_told_of_a_task_after_its_end_changes_nothing():
    told = Told()(events.AttemptStarted).finish(status="timed_out")
    for index in range(5000):
        told(events.TaskReported, index, message="late")
    assert told.view.running == {}
    assert told.view.bad == 1
    assert len(told.view._early) <= 1000


def test_the_rest_takes_as_long_as_what_is_done():
    told = Told(total=10)
    for index in range(2):
        told.finish(index)
    assert told.view.remaining(8.0) is None
    told.finish(2).finish(3)
    assert told.view.remaining(8.0) == pytest.approx(12.0)
    assert Told(total=None).finish().view.remaining(8.0) is None


def test_results_that_are_kept_count_as_done_and_not_in_the_pace():
    told = Told(total=100)
    for index in range(80):
        told(events.TaskKept, index, status="succeeded")
    for index in range(80, 84):
        told.finish(index, status="failed" if index == 80 else "succeeded")
    assert (told.view.done, told.view.bad) == (84, 1)
    assert told.view.remaining(8.0) == pytest.approx(32.0)


def test_lines_of_a_run_that_goes_on_count_what_it_keeps():
    now, stream = [0.0], io.StringIO()
    lines = ProgressLines(stream, clock=lambda: now[0])
    lines(events.RunStarted(run_id="r", total=100, max_workers=8))
    for index in range(80):
        lines(events.TaskKept(run_id="r", task=f"t{index}", index=index, status="succeeded"))
    now[0] = 8.0
    about = {"run_id": "r", "task": "t80", "index": 80, "attempt": 1}
    usual = {"stop_reason": "answered", "duration": 8.0, "error": None, "usage": Usage()}
    lines(events.TaskFinished(**about, status="succeeded", **usual))
    lines(events.RunFinished(run_id="r", stop_reason=None, counts={}))
    assert stream.getvalue().splitlines()[1:] == [
        "ag2-parallel: [81/100] 1 succeeded, 80 kept, about 2:32 left",
        "ag2-parallel: done in 8.0 s: 1 succeeded, 80 kept",
    ]


def test_an_unknown_price_makes_the_cost_unknown():
    told = Told().finish(0, usage=Usage(cost=1.0)).finish(1, usage=Usage(cost=None)).finish(2, usage=Usage(cost=1.0))
    assert told.view.cost is None


def test_a_night_of_ten_thousand_tasks_that_fail_and_are_tried_again_is_some_hundred_lines():
    now, stream = [0.0], io.StringIO()
    lines = ProgressLines(stream, clock=lambda: now[0])
    lines(events.RunStarted(run_id="r", total=10_000, max_workers=8))
    for index in range(10_000):
        now[0] += 3.0
        about = {"run_id": "r", "task": f"t{index}", "index": index, "attempt": 1}
        lines(events.TaskRetrying(**about, delay=1.0, error="e"))
        lines(events.RunWarning(**about, message="odd"))
        lines(
            events.TaskFinished(**about, status="failed", stop_reason="error", duration=3.0, error="e", usage=Usage())
        )
    lines(events.RunFinished(run_id="r", stop_reason=None, counts={}))
    written = stream.getvalue().splitlines()
    assert 100 < len(written) < 800
    assert "about" in written[-2]
    assert written[-1].endswith("10000 failed")
    assert "\x1b" not in stream.getvalue()


def test_numbers_are_short():
    assert [clock(seconds) for seconds in (0, 61, 3661)] == ["0:00", "1:01", "1:01:01"]
    assert [tokens(count) for count in (0, 9_999, 12_345, 3_456_789)] == [
        "0 tokens",
        "9,999 tokens",
        "12 k tokens",
        "3.46 M tokens",
    ]


def test_how_to_go_on_with_a_run_is_told_at_its_start():
    view, stream = RunView(), io.StringIO()
    started = events.RunStarted(run_id="r", total=1, max_workers=1, how_to_resume="ag2-parallel resume runs.db r")
    view.take(started, 0.0)
    ProgressLines(stream)(started)
    assert view.notes == ["if this run is cut off, go on with: ag2-parallel resume runs.db r"]
    assert stream.getvalue().endswith(f"ag2-parallel: {view.notes[0]}\n")

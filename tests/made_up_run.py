"""Runs made up for tests of what shows them: as large, as odd and as broken as wanted, without running anything."""

import random
from datetime import UTC, datetime, timedelta

from ag2_parallel import ParallelTaskResult, RunResults, TaskError, TaskStatus, Usage
from ag2_parallel.core.metrics import RunMetrics
from ag2_parallel.spans import Span

BEGAN = datetime(2026, 3, 2, 21, 30, tzinfo=UTC)
SPECIALITIES = ("cardiology", "pulmonology", "neurology", "gastroenterology", "endocrinology", "final assessment")
WORDS = [
    "patient",
    "chest",
    "pain",
    "since",
    "two",
    "days",
    "radiating",
    "to",
    "the",
    "left",
    "arm",
    "troponin",
    "normal",
    "ECG",
    "shows",
    "no",
    "ST",
    "elevation",
    "consider",
    "pulmonary",
    "embolism",
    "D-dimer",
    "borderline",
    "CT",
    "angiography",
    "recommended",
    "differential",
    "includes",
    "pericarditis",
    "reflux",
    "anxiety",
]


def made_up_run(count=6, *, workers=None, seed=3, words_a_message=60, messages=8, names=None):
    """Results of a run of `count` tasks on `workers` workers; every seventh or so ends badly."""
    draw = random.Random(seed)
    workers = workers or max(2, min(32, count))
    free = [0.0] * workers
    names = names or (SPECIALITIES if count <= len(SPECIALITIES) else [f"case {n:04}" for n in range(count)])
    results = []
    for index, name in enumerate(names[:count]):
        begins = min(free)
        result = _result(draw, index, name, begins, words_a_message, messages)
        free[free.index(begins)] = begins + result.duration
        results.append(result)
    metrics = RunMetrics()
    for result in results:
        metrics.count(result)
    told = metrics.to_dict(wall=max(free), peak=workers, abandoned=0, lag_max=0.01, workers=workers)
    return RunResults(results, run_id="night-2026-03-02", metrics=told)


def _result(draw, index, name, begins, words, messages):
    status, error = _fate(draw, index, name)
    spans, end = _spans(draw, retried=index % 5 == 2)
    usage = _used(draw, spans)
    talk = [_said(draw, turn, name, words) for turn in range(messages)]
    return ParallelTaskResult(
        name=name, index=index, status=status, error=error, duration=end, queued=begins, attempts=1 + (index % 5 == 2),
        started_at=BEGAN + timedelta(seconds=begins), finished_at=BEGAN + timedelta(seconds=begins + end),
        waited=sum(span.duration for span in spans if span.kind in {"wait", "backoff"}), trace=tuple(spans), usage=usage,
        output=None if error else talk[-1]["content"], chat_history=talk,
        stop_reason={"succeeded": "answered", "timed_out": "deadline"}.get(status, "error"), ended="returned",
    )  # fmt: skip


def _fate(draw, index, name):
    if index % 7 != 4:
        return TaskStatus.SUCCEEDED, None
    kind, message = draw.choice([
        ("rate_limit", f"the call was not sent: it would have to wait {draw.random() * 9:.1f} s for 60 requests in 60 s"),
        ("timeout", f'task "{name}" took longer than its limit of 30 s'),
        ("tool", f"lookup of patient {draw.randrange(99999)} failed: no such record"),
        ("context_length", f"the request has {draw.randrange(130000, 200000)} tokens, and the model takes 128000"),
    ])  # fmt: skip
    trace = 'Traceback (most recent call last):\n  File "tools.py", line 7, in lookup\nLookupError: no such record'
    status = TaskStatus.TIMED_OUT if kind == "timeout" else TaskStatus.FAILED
    return status, TaskError(
        type="TimeoutError" if kind == "timeout" else "LookupError",
        message=message,
        kind=kind,
        traceback=trace,
        agent="Researcher",
    )


def _spans(draw, *, retried):
    spans, now = [], 0.0
    for attempt in (1, 2) if retried else (1,):
        began = now
        now += draw.uniform(0.02, 0.3)
        for turn in range(draw.randrange(3, 7)):
            length = draw.lognormvariate(0.6, 0.5)
            if draw.random() < 0.25:
                spans.append(Span("wait", "60 requests in 60 s", now + 0.01, now + length * 0.4))
            who = draw.choice(("Physician", "Researcher", "Critic"))
            spans.append(
                Span(
                    "call",
                    "gpt-4o-mini",
                    now,
                    now + length,
                    f"{who}, HTTP 200, {400 + 90 * turn} + {draw.randrange(40, 300)} tokens",
                )
            )
            now += length + draw.uniform(0.005, 0.06)
            if draw.random() < 0.4:
                took = draw.uniform(0.1, 1.4)
                spans.append(Span("tool", draw.choice(("search_guidelines", "lookup")), now, now + took, "Researcher"))
                now += took + 0.02
        last = attempt == (2 if retried else 1)
        spans.append(Span("attempt", f"attempt {attempt}", began, now, "succeeded" if last else "failed, connection"))
        if not last:
            spans.append(Span("backoff", "before the next attempt", now, now + 0.8))
            now += 0.8
    return sorted(spans, key=lambda span: span.start), now


def _used(draw, spans):
    calls = sum(span.kind == "call" for span in spans)
    sent, made = 600 * calls + draw.randrange(300), 160 * calls + draw.randrange(90)
    usage = Usage(prompt_tokens=sent, completion_tokens=made, calls=calls, cost=sent * 1.5e-7 + made * 6e-7)
    return usage.for_model("gpt-4o-mini")


def _said(draw, turn, name, words):
    who = ("user", "Physician", "Researcher", "Critic")[turn % 4] if turn else "user"
    text = f"{name}: " + " ".join(draw.choice(WORDS) for _ in range(words)) + "."
    if turn % 4 == 2:
        call = {"id": f"c{turn}", "function": {"name": "lookup", "arguments": '{"record": 4711}'}}
        return {"role": "assistant", "name": who, "content": text, "tool_calls": [call]}
    return {"role": "user" if turn == 0 else "assistant", "name": who, "content": text}

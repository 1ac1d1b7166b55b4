"""A second copy of a slow call."""

import threading

import openai
import pytest
from gate_harness import FAST, HELLO, InThread, ask, client, harness, http_answer, raw_server
from hypothesis import given
from hypothesis import strategies as st

from ag2_parallel import Budget, RateLimit
from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.budget import Spending
from ag2_parallel.gate.hedging import AnswerTimes, may_be_sent_twice
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.testing import Fault, ModelServer, Reply

HEDGED = CallLimits(hedge_after=0.1)
CHAT = "/v1/chat/completions"


@pytest.fixture
def engine():
    with harness() as made:
        yield made


def slow_first(then):
    return [Reply("slow", latency=20), then]


def test_the_first_answer_wins_and_the_loser_is_cut(engine):
    with ModelServer(slow_first(Reply("quick", usage=(5, 1)))) as server:
        attempt = engine.attempt(limits=HEDGED)
        assert ask(attempt, server).choices[0].message.content == "quick"
        assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
        usage = attempt.usage()
        assert (usage.calls, usage.total_tokens, usage.unreported_calls) == (1, 6, 1)
        (hedged,) = attempt.notes.named("ModelCallHedged")
        assert hedged.after == 0.1
        assert len(attempt.notes.named("ModelCallStarted")) == 2
        assert len(attempt.notes.named("ModelCallFinished")) == 1


def test_a_quick_call_gets_no_copy(engine):
    with ModelServer("quick") as server:
        attempt = engine.attempt(limits=CallLimits(hedge_after=10))
        ask(attempt, server)
        assert server.ledger.count == 1
        assert attempt.notes.named("ModelCallHedged") == []


@pytest.mark.parametrize("fault", [Fault.status(500), Fault.reset()])
def test_a_copy_that_fails_does_not_spoil_the_call(engine, fault):
    with ModelServer([Reply("slow", latency=0.4), fault]) as server:
        assert ask(engine.attempt(limits=HEDGED), server).choices[0].message.content == "slow"
        assert server.ledger.count == 2


def test_where_both_fail_the_call_is_tried_again(engine):
    with ModelServer([Fault.hang(0.3), Fault.status(500), Reply("fine")]) as server:
        attempt = engine.attempt(FAST, limits=HEDGED)
        assert ask(attempt, server).choices[0].message.content == "fine"
        assert attempt.usage().retried_calls == 1


def test_a_cut_ends_both(engine):
    with ModelServer(Fault.hang()) as server:
        attempt = engine.attempt(limits=HEDGED)
        call = InThread(ask, attempt, server)
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 2)
        engine.cut(attempt)
        assert isinstance(call.join().error, TaskStopped)
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
        assert attempt.usage().unreported_calls == 2


def test_a_copy_never_waits_for_a_limit(engine):
    with ModelServer(Reply("slow", latency=0.4)) as server:
        attempt = engine.attempt(limits=CallLimits((RateLimit(concurrent=1),), hedge_after=0.05))
        ask(attempt, server)
        assert server.ledger.count == 1
        assert attempt.waited() == 0


def test_a_stream_gets_no_copy(engine):
    with ModelServer(Reply("slow", latency=0.4)) as server:
        made = client(engine.attempt(limits=HEDGED), server)
        list(made.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True))
        assert server.ledger.count == 1


def test_the_percentile_is_learnt_from_the_answers(engine):
    with ModelServer([*[Reply("quick", latency=0.02)] * 20, Reply("slow", latency=20), "copy"]) as server:
        attempt = engine.attempt(limits=CallLimits(hedge_after="p95"))
        for _ in range(20):
            ask(attempt, server)
        assert ask(attempt, server).choices[0].message.content == "copy"
        assert server.ledger.count == 22


@given(st.lists(st.floats(0.001, 100), min_size=20, max_size=300))
def test_few_answers_are_slower_than_the_percentile(seconds):
    times = AnswerTimes()
    for each in seconds:
        times.note("e", "m", each)
    after = times.hedge_after("p95", "e", "m")
    recent = seconds[-200:]
    assert sum(each > after for each in recent) <= 0.05 * len(recent)
    assert times.hedge_after("p95", "e", "other") is None
    assert times.hedge_after(2.5, "e", "other") == 2.5
    assert times.hedge_after(None, "e", "m") is None


@pytest.mark.parametrize(
    ("path", "body", "may"),
    [
        (CHAT, {}, True),
        (CHAT, {"tools": [{"type": "function"}], "store": False}, True),
        ("/v1/messages", {"tools": [{"name": "x"}]}, True),
        ("/v1/messages", {"tools": [{"type": "code_execution_20250522"}]}, False),
        (CHAT, {"tools": "odd"}, False),
        (CHAT, {"store": True}, False),
        (CHAT, {"stream": True}, False),
        (CHAT, {"web_search_options": {"a": 1}}, False),
        ("/v1/responses", {}, False),
        ("/v1/files", {}, False),
    ],
)
def test_only_what_leaves_nothing_behind_is_sent_twice(path, body, may):
    assert may_be_sent_twice(path, body) is may


def test_a_copy_that_is_refused_tells_of_a_limit_all_the_same(engine):
    with ModelServer([Reply("slow", latency=0.4), Fault.status(429, retry_after=1), Reply("late")]) as server:
        attempt = engine.attempt(limits=HEDGED)
        assert ask(attempt, server).choices[0].message.content == "slow"
        ask(engine.attempt(), server)
        times = [request.at for request in server.ledger.requests]
        assert times[2] - times[1] >= 0.95
        assert len(attempt.notes.named("ModelCallThrottled")) == 1


def test_no_copy_is_sent_past_the_budget(engine):
    told = []
    spending = Spending(Budget(max_tokens=100), on_reached=told.append, on_refused=told.append)
    with ModelServer([Reply("slow", latency=1), Reply("quick", usage=(90, 10))]) as server:
        slow, quick = (engine.attempt(limits=CallLimits(hedge_after=0.3), spending=spending.of(n)) for n in range(2))
        call = InThread(ask, slow, server)
        assert server.ledger.wait_for(lambda ledger: ledger.count == 1)
        ask(quick, server)
        assert call.join().value.choices[0].message.content == "slow"
        assert server.ledger.count == 2
        assert len(told) == 1, "the budget was reached, and nothing was refused for it"


STREAM = b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\ndata: [DONE]\n\n'


def test_of_two_streams_that_nobody_asked_for_the_first_is_handed_over_whole(engine):
    both_there, long = threading.Barrier(2), 3_000_000

    def answer(_request, number):
        both_there.wait(5)
        return http_answer(STREAM % (b"%d" % number * long), content_type="text/event-stream")

    with raw_server() as server:
        server.answer = answer
        sent = engine.attempt(limits=HEDGED).http_client()
        response = sent.post(f"{server.url}/v1/chat/completions", json={"model": "m", "messages": HELLO})
        assert any(response.content == STREAM % (number * long) for number in (b"1", b"2"))
        assert len(server.requests) == 2


def at_once(*replies):
    """The first request and its copy are answered when both are there."""
    both_there = threading.Barrier(2)

    def reply(request):
        both_there.wait(20)
        return replies[request.number]

    return reply


def test_two_whole_answers_are_both_counted(engine):
    reply = at_once(Reply("a", usage=(10, 5)), Reply("b", usage=(10, 5)))
    for _ in range(5):
        with ModelServer(reply) as server:
            attempt = engine.attempt(limits=HEDGED)
            ask(attempt, server)
            usage = attempt.usage()
            assert usage.calls + usage.unreported_calls == 2
            assert usage.total_tokens == 15 * usage.calls


@pytest.mark.parametrize(
    "replies", [(Fault.reset(), Reply("b", usage=(10, 5))), (Reply("b", usage=(10, 5)), Fault.reset())]
)
def test_one_that_breaks_beside_an_answer_is_counted_too(engine, replies):
    with ModelServer(at_once(*replies)) as server:
        attempt = engine.attempt(limits=HEDGED)
        assert ask(attempt, server).choices[0].message.content == "b"
        assert (attempt.usage().calls, attempt.usage().unreported_calls) == (1, 1)


def test_an_error_beside_a_broken_connection_costs_nothing(engine):
    with ModelServer(at_once(Fault.status(400), Fault.reset())) as server:
        attempt = engine.attempt(limits=HEDGED)
        with pytest.raises(openai.BadRequestError):
            ask(attempt, server)
        assert attempt.usage().unreported_calls == 1

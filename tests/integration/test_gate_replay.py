"""Recorded model calls: replayed for an attempt that was cut, written down before the worker sees the answer."""

import json
import threading

import httpx
import openai
import pytest
from gate_harness import FAST, InThread, ask, client, harness
from late_tape import LateTape

from ag2_parallel import Budget, RateLimit
from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.budget import Spending
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def engine():
    with harness() as made:
        yield made


@pytest.fixture
def server():
    with ModelServer(lambda request: Reply(f"answer to {request.last_text}", usage=(9, 4))) as made:
        yield made


def said(answer):
    return answer.choices[0].message.content


def text(chunks):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def recorded(engine, server, *texts, **options):
    """The records of an attempt that asked `texts`."""
    tape = LateTape()
    attempt = engine.attempt(tape=tape)
    for each in texts:
        answer = ask(attempt, server, text=each, **options)
        list(answer) if options.get("stream") else None
    server.ledger.reset()
    return tape.kept


def send_chat(attempt, server, body):
    """Through the direct door."""
    like = httpx.Request("POST", f"{server.base_url}/chat/completions", headers={"content-type": "application/json"})
    return attempt.chat_sender(like)(json.dumps(body).encode(), body["model"])


def test_recorded_calls_are_answered_without_a_request_and_the_rest_goes_live(engine, server):
    records = recorded(engine, server, "one", "two")
    attempt = engine.attempt(tape=LateTape(records))
    answers = [said(ask(attempt, server, text=each)) for each in ("one", "two", "three")]
    assert answers == ["answer to one", "answer to two", "answer to three"]
    assert [json.dumps(request.body).count("three") for request in server.ledger.requests] == [1]
    usage = attempt.usage()
    assert (usage.replayed_calls, usage.calls, usage.total_tokens) == (2, 1, 13)


def test_what_is_replayed_is_told_of_and_costs_nothing(engine, server):
    records = recorded(engine, server, "one")
    assert records[0].usage.total_tokens == 13
    spending = Spending(Budget(max_tokens=1), on_reached=lambda _why: None, on_refused=lambda _why: None)
    limits = CallLimits((RateLimit(requests=1, per=60),))
    attempt = engine.attempt(tape=LateTape(records * 3), spending=spending.of(0), limits=limits, remaining=lambda: 5.0)
    for _ in range(3):
        assert said(ask(attempt, server, text="one")) == "answer to one"
    usage = attempt.usage()
    assert (usage.replayed_calls, usage.calls, usage.total_tokens, usage.cost) == (3, 0, 0, 0)
    assert server.ledger.count == 0
    assert [event.type for event in attempt.notes.events] == ["ModelCallReplayed"] * 3
    assert attempt.notes.events[0].usage.total_tokens == 13


@pytest.mark.parametrize("first", ["http", "direct"])
def test_both_doors_read_and_write_the_same_records(engine, server, first):
    body = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}

    def through(door, attempt):
        if door == "direct":
            answer = send_chat(attempt, server, body)
            return answer.status, json.loads(answer.body)
        response = client(attempt, server).chat.completions.with_raw_response.create(**body)
        return response.status_code, response.http_response.json()

    tape = LateTape()
    other = "http" if first == "direct" else "direct"
    live = through(first, engine.attempt(tape=tape))
    replayed = through(other, engine.attempt(tape=LateTape(tape.kept)))
    assert live == replayed
    assert server.ledger.count == 1


def test_the_same_request_twice_is_two_records_in_their_order(engine):
    with ModelServer(["first", "second"]) as server:
        records = recorded(engine, server, "same", "same")
        attempt = engine.attempt(tape=LateTape(records))
        assert [said(ask(attempt, server, text="same")) for _ in range(2)] == ["first", "second"]
        assert server.ledger.count == 0


def test_two_calls_at_once_find_their_records_in_whatever_order(engine, server):
    records = recorded(engine, server, "one", "two", "three")
    attempt = engine.attempt(tape=LateTape(reversed(records)))
    calls = [InThread(ask, attempt, server, text=each) for each in ("three", "one", "two")]
    assert [said(call.join().value) for call in calls] == ["answer to three", "answer to one", "answer to two"]
    assert server.ledger.count == 0


def test_the_worker_gets_a_live_answer_only_once_it_is_written_down(engine, server):
    tape = LateTape(commits=False)
    attempt = engine.attempt(tape=tape)
    call = InThread(ask, attempt, server)
    assert tape.waits_now.wait(10)
    assert not attempt.notes.named("ModelCallFinished")
    assert call.value is None
    engine.on_loop(tape.commit)
    assert said(call.join().value) == "answer to hello"
    assert attempt.usage().calls == 1


def test_a_call_that_waits_to_be_written_down_holds_no_limit(engine, server):
    limits = CallLimits((RateLimit(concurrent=1),))
    tape = LateTape(commits=False)
    waiting = InThread(ask, engine.attempt(tape=tape, limits=limits), server)
    assert tape.waits_now.wait(10)
    assert said(ask(engine.attempt(limits=limits), server, text="next")) == "answer to next"
    engine.on_loop(tape.commit)
    assert waiting.join().value


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_ends_the_wait_for_the_commit(engine, server, stream):
    tape = LateTape(commits=False)
    attempt = engine.attempt(tape=tape)
    call = InThread(lambda: list(ask(attempt, server, stream=stream)))
    assert tape.waits_now.wait(10)
    engine.cut(attempt)
    assert isinstance(call.join().error, TaskStopped)
    assert attempt.was_cut
    assert attempt.usage().calls == 1, "it was answered, and is paid for"
    engine.on_loop(tape.commit)  # late, and nobody minds


def test_a_stream_passes_and_its_end_is_held_back(engine):
    with ModelServer(Reply("a b c", chunk_delay=0.02)) as server:
        tape = LateTape(commits=False)
        attempt = engine.attempt(tape=tape)
        begun, ended = threading.Event(), threading.Event()

        def read():
            got = []
            for chunk in ask(attempt, server, stream=True):
                got += [chunk]
                begun.set()
            ended.set()
            return got

        reading = InThread(read)
        assert begun.wait(10)
        assert tape.waits_now.wait(10)
        assert not ended.is_set()
        engine.on_loop(tape.commit)
        assert text(reading.join().value) == "a b c"
        assert tape.kept[0].body.endswith(b"data: [DONE]\n\n")


def test_a_stream_is_replayed_as_a_stream(engine):
    with ModelServer(Reply("a b c", usage=(9, 3), chunk_delay=0.01)) as server:
        tape = LateTape()
        live = engine.attempt(tape=tape)
        chunks = list(ask(live, server, stream=True))
        replaying = engine.attempt(tape=LateTape(tape.kept))
        again = list(ask(replaying, server, stream=True))
        assert [chunk.model_dump() for chunk in again] == [chunk.model_dump() for chunk in chunks]
        assert server.ledger.count == 1
        assert tape.kept[0].usage.total_tokens == live.usage().total_tokens == 12
        assert replaying.usage().total_tokens == 0


def test_a_stream_that_breaks_off_is_not_recorded(engine, server):
    server.fail_next(Fault.half_stream())
    tape = LateTape()
    with pytest.raises(openai.APIConnectionError):
        list(ask(engine.attempt(tape=tape), server, stream=True))
    assert tape.kept == []


def test_tool_calls_are_known_again_whatever_their_ids(engine):
    """AG2 and some clients make up ids of their own, others in each process."""

    def conversation(name):
        call = {"id": name, "type": "function", "function": {"name": "add", "arguments": "{}"}}
        return [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": name, "content": "3"},
        ]

    with ModelServer(Reply(tool_calls=[ToolCall("add", {"a": 1})])) as server:
        tape = LateTape()
        model = {"model": "scripted", "tools": [TOOL]}
        client(engine.attempt(tape=tape), server).chat.completions.create(messages=conversation("call_a"), **model)
        again = client(engine.attempt(tape=LateTape(tape.kept)), server)
        answer = again.chat.completions.create(messages=conversation("call_b"), **model)
        assert answer.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
        assert server.ledger.count == 1


def test_calls_that_differ_in_anything_else_go_live(engine, server):
    records = recorded(engine, server, "one")
    for change in ({"model": "other"}, {"temperature": 0.5}, {"tools": [TOOL]}, {"text": "one "}, {"stream": True}):
        attempt = engine.attempt(tape=LateTape(records))
        answer = ask(attempt, server, **{"text": "one"} | change)
        list(answer) if "stream" in change else None
        assert attempt.usage().replayed_calls == 0
    assert server.ledger.count == 5


def test_a_retried_call_is_one_record(engine, server):
    server.fail_next(Fault.status(503), times=2)
    tape = LateTape()
    ask(engine.attempt(tape=tape), server)
    assert [record.status for record in tape.kept] == [200]
    assert (len(tape.asked), tape.kept[0].usage.retried_calls) == (1, 2)


def test_a_failed_call_is_recorded_only_where_another_entry_follows_it(engine, server):
    """The answer of the next entry comes after the failure of the first in a replay as well."""
    server.reply = Fault.status(404)
    last, first = LateTape(), LateTape()
    for tape, last_entry in ((last, True), (first, False)):
        with pytest.raises(Exception, match="404"):
            client(engine.attempt(tape=tape), server, last_entry=last_entry).chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}]
            )
    assert last.kept == []
    assert [record.status for record in first.kept] == [404]


def test_a_hedged_call_is_one_record(engine):
    with ModelServer([Reply("slow", latency=0.5), Reply("quick")]) as server:
        tape = LateTape()
        attempt = engine.attempt(tape=tape, limits=CallLimits(hedge_after=0.05))
        assert said(ask(attempt, server)) == "quick"
        assert len(tape.kept) == 1
        again = engine.attempt(tape=LateTape(tape.kept), limits=CallLimits(hedge_after=0.05))
        assert said(ask(again, server)) == "quick"
        assert server.ledger.count == 2


def test_halves_of_surrogate_pairs_are_known_again(engine, server):
    """F26: escaped as they may be in JSON, they are no trouble for a record."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": "\ud83d a\udc97b"}]}
    tape = LateTape()
    live = send_chat(engine.attempt(tape=tape), server, body)
    assert live.status == 200
    assert send_chat(engine.attempt(tape=LateTape(tape.kept)), server, body).body == live.body
    assert server.ledger.count == 1


def test_no_key_is_in_a_record(engine, server):
    """F33: a record has the answer, and of the request its digest alone."""
    records = recorded(engine, server, "one")
    assert "sk-test" not in repr(records)
    assert {name for record in records for name, _ in record.headers} <= {
        "Content-Type",
        "content-type",
        "x-request-id",
    }


def test_a_list_of_models_is_not_recorded(engine, server):
    tape = LateTape()
    client(engine.attempt(FAST, tape=tape), server).models.list()
    assert tape.asked == tape.kept == []

"""Whole runs recorded to a file and played from it: no key, no network, at any speed, with any number of workers."""

import base64
import json
import os
import stat
import time

import pytest
from autogen import AssistantAgent, GroupChat
from environment import environment
from gate_harness import http_answer, raw_server
from ollama_server import OllamaServer, ollama_config

from ag2_parallel import (
    ConfigurationError,
    ParallelAgentRunner,
    ParallelTask,
    RateLimit,
    Record,
    Replay,
    RetryPolicy,
)
from ag2_parallel.testing import Fault, ModelServer, RecordingObserver, Reply, ToolCall

KEY = "sk-test-0123456789abcdef"
FAST = RetryPolicy(4, initial=0.001)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "talk.jsonl"


@pytest.fixture
def server():
    with ModelServer(lambda request: Reply(f"answer to {request.last_text}", usage=(9, 4))) as made:
        yield made


def run(tasks, **options):
    return ParallelAgentRunner(progress=False, **{"model_retry": FAST} | options).run(tasks)


def tasks(*texts):
    return [ParallelTask(f"t{i}", text) for i, text in enumerate(texts)]


def keyless(url, **entry):
    """A configuration without a key."""
    return {"config_list": [{"model": "scripted", "base_url": f"{url}/v1"} | entry]}


def exchanges(path):
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def outputs(results):
    assert results.ok, results.errors
    return {name: result.output for name, result in results.items()}


def test_a_run_is_played_without_a_server_and_without_a_key(path, server):
    url = server.url
    live = run(tasks("one", "two", "three"), llm_config=server.llm_config(), cassette=Record(path), max_workers=3)
    server.close()
    assert "OPENAI_API_KEY" not in os.environ
    for workers in (1, 8):
        played = run(tasks("one", "two", "three"), llm_config=keyless(url), cassette=Replay(path), max_workers=workers)
        assert outputs(played) == outputs(live)
        assert played.usage == live.usage, "it is told as it was"


@pytest.mark.parametrize("direct", [True, False])
def test_both_doors_are_recorded(path, server, direct):
    config = server.llm_config(direct=direct)
    live = outputs(run(tasks("one"), llm_config=config, cassette=Record(path)))
    other = keyless(server.url, direct=not direct)
    assert outputs(run(tasks("one"), llm_config=other, cassette=Replay(path))) == live
    assert server.ledger.count == 1


def test_streams_are_recorded_with_their_times(path):
    with ModelServer(Reply("a b c d e f", chunk_delay=0.05)) as server:
        config = server.llm_config(stream=True)
        live = outputs(run(tasks("one"), llm_config=config, cassette=Record(path)))
        times = [at for at, _ in exchanges(path)[0]["chunks"]]
        assert times == sorted(times)
        assert times[-1] - times[0] > 0.15
        took = []
        for speed in (0, 1):
            began = time.perf_counter()
            assert outputs(run(tasks("one"), llm_config=config, cassette=Replay(path, speed=speed))) == live
            took.append(time.perf_counter() - began)
        assert took[1] - took[0] > 0.15
        assert server.ledger.count == 1


def test_the_file_is_its_owners_and_says_what_it_is(path, server):
    run(tasks("one"), llm_config=server.llm_config(), cassette=Record(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text().splitlines()[0])["ag2_parallel_cassette"] == 1
    assert [(each["task"], each["status"]) for each in exchanges(path)] == [("t0", 200)]


def test_refusals_are_played_without_waiting(path, server):
    """Below the tries of a call: the first comes back as the 429 it was."""
    server.fail_next(Fault.status(429, retry_after=1))
    live = run(tasks("one"), llm_config=server.llm_config(), cassette=Record(path))
    assert [each["status"] for each in exchanges(path)] == [429, 200]
    assert live["t0"].duration > 1
    played = run(tasks("one"), llm_config=server.llm_config(), cassette=Replay(path))
    assert outputs(played) == outputs(live)
    assert played["t0"].duration < live["t0"].duration / 2
    assert played.usage.retried_calls == 1


def test_broken_connections_are_played(path, server):
    server.fail_next(Fault.reset())
    run(tasks("one"), llm_config=server.llm_config(), cassette=Record(path))
    first, second = exchanges(path)
    assert (first["status"], first["error"]["transient"], second["status"]) == (0, True, 200)
    played = run(tasks("one"), llm_config=server.llm_config(), cassette=Replay(path))
    assert (played["t0"].output, played.usage.retried_calls) == ("answer to one", 1)


def test_a_final_error_is_played_as_the_same_error(path, server):
    server.reply = Fault.status(404)
    recorded, played = (
        run(tasks("one"), llm_config=server.llm_config(), cassette=each)["t0"].error
        for each in (Record(path), Replay(path))
    )
    assert (played.kind, played.status_code, played.message) == (
        recorded.kind,
        recorded.status_code,
        recorded.message,
    )


def test_limits_are_not_waited_for(path, server):
    limits = [RateLimit(requests=1, per=600)]
    run(tasks(*"abcd"), llm_config=server.llm_config(), cassette=Record(path), max_workers=4)
    played = run(tasks(*"abcd"), llm_config=server.llm_config(), cassette=Replay(path), rate_limits=limits)
    assert len(outputs(played)) == 4


def test_a_call_that_is_not_there_fails_its_task_and_shows_the_nearest(path, server):
    run(tasks("one", "two"), llm_config=server.llm_config(), cassette=Record(path))
    server.ledger.reset()
    observer = RecordingObserver()
    results = run(
        tasks("one", "too"), llm_config=server.llm_config(), cassette=Replay(path), observers=[observer], retry=3
    )
    error = results["t1"].error
    assert (results["t0"].output, error.kind, error.type) == ("answer to one", "configuration", "CassetteMissError")
    assert 'task "t1": a model call is not in the cassette' in error.message
    assert "recorded 'two', asked 'too'" in error.message
    assert 'of task "t1"' in error.message
    assert results["t1"].attempts == 1
    assert server.ledger.count == 0, "no network is touched"


def test_a_call_that_was_recorded_less_often_says_so(path, server):
    run(tasks("one"), llm_config=server.llm_config(), cassette=Record(path))
    results = run(tasks("one", "one"), llm_config=server.llm_config(), cassette=Replay(path))
    failed = [result for result in results.values() if not result.ok]
    assert len(failed) == 1
    assert "the same call was recorded once, and is asked for once more" in failed[0].error.message


def test_calls_belong_to_their_tasks_and_renamed_tasks_take_what_is_left(path):
    with ModelServer(["first", "second", "third"]) as server:
        live = run(tasks("same", "same", "same"), llm_config=server.llm_config(), cassette=Record(path), max_workers=1)
        played = run(
            reversed(tasks("same", "same", "same")),
            llm_config=server.llm_config(),
            cassette=Replay(path),
            max_workers=3,
        )
        assert outputs(played) == outputs(live)
        renamed = run(
            [ParallelTask(f"other {i}", "same") for i in range(3)],
            llm_config=server.llm_config(),
            cassette=Replay(path),
        )
        assert sorted(outputs(renamed).values()) == ["first", "second", "third"]


def test_a_team_with_tools_is_played_whole(path, server):
    config = server.llm_config()

    def team(ctx):
        llm = ctx.llm_config(keyless(server.url))
        names = ("one", "two")
        agents = [AssistantAgent(name, llm_config=llm) for name in names]
        agents[0].register_for_execution(name="add")(lambda a: a)
        return GroupChat(agents, messages=[], max_round=4, speaker_selection_method="auto")

    def answer(request):
        if "add" not in str(request.messages) and request.number == 2:
            return Reply(tool_calls=[ToolCall("add", {"a": 1})])
        return "one" if "Read the above conversation" in str(request.messages) else f"line {request.number}"

    server.reply = answer
    task = ParallelTask("t", "go", agent=team)
    with environment(OPENAI_API_KEY=KEY):
        live = run([task], llm_config=config, cassette=Record(path))["t"]
    asked = server.ledger.count
    assert "OPENAI_API_KEY" not in os.environ
    played = run([task], llm_config=keyless(server.url), cassette=Replay(path))["t"]
    assert played.error is None, played.error
    assert list(played.chat_history) == list(live.chat_history)
    assert server.ledger.count == asked >= 4


def test_ollama_agents_are_recorded_and_played(path):
    with OllamaServer() as ollama:
        ollama.answers = [(503, {"error": "server busy"})]
        task = ParallelTask("t", "word", {"llm_config": ollama_config(ollama)})
        live = run([task], cassette=Record(path))
        played = run([task], cassette=Replay(path))
        assert outputs(played) == outputs(live) == {"t": "heard word"}
        assert played.usage == live.usage
        assert len(ollama.asked) == 2
        other = ParallelTask("t", "other", {"llm_config": ollama_config(ollama)})
        error = run([other], cassette=Replay(path))["t"].error
        assert (error.type, error.kind) == ("CassetteMissError", "configuration")
        assert len(ollama.asked) == 2


def test_secrets_are_never_stored(path):
    """F33: in no form, also where the server quotes them."""
    body = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    prompt = f"my key is {KEY}, or Bearer {KEY}"
    with raw_server() as raw:
        raw.answer = http_answer(body, status=401, headers=[f"Set-Cookie: s={KEY}", f"X-Api-Key: {KEY}"])
        config = {"config_list": [{"model": "m", "api_key": KEY, "base_url": raw.url}]}
        for config["config_list"][0]["direct"] in (True, False):
            run(tasks(prompt), llm_config=config, cassette=Record(path))
    blob = path.read_text()
    encoded = base64.b64encode(KEY.encode()).decode()
    assert exchanges(path)[0]["status"] == 401
    assert not any(form in blob for form in (KEY, encoded, encoded.rstrip("="), "Bearer sk"))
    played = run(tasks(prompt), llm_config=config, cassette=Replay(path))
    assert played["t0"].error.kind == "authentication", "it is known again though it was masked"


@pytest.mark.parametrize(
    "text", ["a\u2028b", "\x00", "\U0001f378", "e\u0301", "\u202etxt", "\r\n", "\ufeffx", "x" * 300_000]
)
def test_text_of_any_kind_survives(path, server, text):
    """F26."""
    live = outputs(run(tasks(text), llm_config=server.llm_config(), cassette=Record(path)))
    assert len(path.read_bytes().split(b"\n")) == 3
    assert outputs(run(tasks(text), llm_config=server.llm_config(), cassette=Replay(path))) == live
    assert server.ledger.count == 1


def test_bodies_that_are_no_text_survive(path):
    with raw_server() as raw:
        raw.answer = http_answer(b'{"caf\xe9": 1}')
        config = {"config_list": [{"model": "m", "api_key": KEY, "base_url": raw.url}]}
        live, played = (
            run(tasks("one"), llm_config=config, cassette=each, model_retry=1)["t0"].error
            for each in (Record(path), Replay(path))
        )
        assert (played.kind, played.message) == (live.kind, live.message)
        assert base64.b64decode(exchanges(path)[0]["chunks"][0][1]["base64"]) == b'{"caf\xe9": 1}'
        assert len(raw.requests) == 1


def test_an_old_recording_is_replaced_and_other_files_are_not(path, server):
    for text in ("one", "two"):
        run(tasks(text), llm_config=server.llm_config(), cassette=Record(path))
    assert len(exchanges(path)) == 1
    path.write_text("precious")
    with pytest.raises(ConfigurationError, match="is no cassette"):
        run(tasks("one"), llm_config=server.llm_config(), cassette=Record(path))
    assert path.read_text() == "precious"


def test_a_cassette_that_cannot_be_used_is_refused_before_anything_starts(path, server, tmp_path):
    def refused(cassette, words):
        with pytest.raises(ConfigurationError, match=words):
            run(tasks("one"), llm_config=server.llm_config(), cassette=cassette)

    refused(Replay(path), "cannot be read")
    refused(Record(tmp_path / "missing" / "talk.jsonl"), "cannot be written")
    refused("talk.jsonl", "neither Record")
    refused(Replay(path, speed=-1), "speed=-1")
    path.write_text('{"ag2_parallel_cassette": 99}\n')
    refused(Replay(path), "version 99")
    path.write_text('{"ag2_parallel_cassette": 1}\n{"task": 1}\n')
    refused(Replay(path), "line 2 of .* is damaged")
    assert server.ledger.count == 0


def test_a_recording_that_was_killed_loses_its_last_line_at_most(path, server):
    run(tasks("one", "two"), llm_config=server.llm_config(), cassette=Record(path), max_workers=1)
    path.write_bytes(path.read_bytes()[:-20])
    results = run(tasks("one", "two"), llm_config=server.llm_config(), cassette=Replay(path))
    assert (results["t0"].ok, results["t1"].error.type) == (True, "CassetteMissError")


def test_a_run_without_calls_is_a_cassette_too(path):
    task = ParallelTask("t", run=lambda ctx: ctx.name)
    for cassette in (Record(path), Replay(path)):
        assert run([task], cassette=cassette)["t"].output == "t"

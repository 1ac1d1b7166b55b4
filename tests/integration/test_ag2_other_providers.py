"""AG2 1.x: model clients that send by themselves, governed as a whole."""

import asyncio
import copy
import importlib.util

import ag2.config
import httpx
import pytest
from ag2 import Agent
from ag2.config import OllamaConfig
from ag2.events import ModelMessageChunk, ModelResponse, Usage
from ag2.testing import TestConfig
from ag2_doors import Scope, on_a_loop, until
from gate_harness import harness, http_answer, raw_server

from ag2_parallel import RateLimit
from ag2_parallel.errors import TaskStopped
from ag2_parallel.frameworks.ag2.govern import governed
from ag2_parallel.frameworks.ag2.stream import FastStream
from ag2_parallel.gate.wishes import CallLimits

CLAUDE = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None,
    "content": [{"type": "text", "text": "fine"}], "usage": {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 2},
}  # fmt: skip
RESPONSE = {
    "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [], "output": [
        {"type": "message", "id": "x", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "fine", "annotations": []}]},
    ],
    "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10,
              "input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 0}},
}  # fmt: skip
COMPLETION = {
    "id": "m", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 2}},
}  # fmt: skip
SDKS = {"openai": ("OpenAIResponsesConfig", "base_url", {}, RESPONSE)}
if importlib.util.find_spec("anthropic"):
    SDKS["anthropic"] = ("AnthropicConfig", "base_url", {"max_tokens": 50}, CLAUDE)
if importlib.util.find_spec("mistralai"):
    SDKS["mistral"] = ("MistralConfig", "server_url", {}, COMPLETION)


class StatusError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status
        self.body = {"message": "no"}


class OwnConfig:
    """A user's own configuration: no dataclass, and a client that does what it is told."""

    provider = "own"
    model = "m"
    base_url = "https://models.example/v1/"

    def __init__(self, call):
        self.call = call

    def copy(self):
        return OwnConfig(self.call)

    def create(self):
        return self.call


@pytest.fixture
def engine():
    with harness() as made:
        yield made


def ask(attempt, config, *, price=None, text="hello there"):
    agent = Agent("agent", "be brief", config=governed(config, Scope(attempt), price=price))
    return on_a_loop(agent.ask(text, stream=FastStream()))


def answer(**used):
    return ModelResponse(usage=Usage(**used))


def test_a_call_is_counted_priced_and_told_of(engine):
    attempt = engine.attempt()
    config = TestConfig(answer(prompt_tokens=7, completion_tokens=3, cache_read_input_tokens=2), model="m")
    ask(attempt, config, price=(1.0, 2.0))
    usage = attempt.usage()
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (1, 7, 3, 2)
    assert usage.cost == pytest.approx(0.013)
    assert [event.type for event in attempt.notes.events] == [
        "ModelCallStarted", "ModelCallFinished",
    ]  # fmt: skip
    assert {event.endpoint for event in attempt.notes.events} == {"TestConfig"}


def test_what_a_model_thinks_is_counted_with_what_it_says(engine):
    attempt = engine.attempt()
    ask(attempt, TestConfig(answer(prompt_tokens=7, completion_tokens=3, total_tokens=30)))
    assert attempt.usage().completion_tokens == 23


def test_a_call_without_usage_is_estimated(engine):
    attempt = engine.attempt()
    ask(attempt, TestConfig("fine"), text="x" * 400)
    usage = attempt.usage()
    assert (usage.calls, usage.unreported_calls) == (1, 1)
    assert 100 <= usage.estimated_tokens <= 110


def test_a_passing_failure_is_tried_again_and_a_lasting_one_is_not(engine):
    attempt = engine.attempt()
    assert ask(attempt, TestConfig(StatusError(503), StatusError(429), "fine")).body == "fine"
    assert (attempt.usage().calls, attempt.usage().retried_calls) == (1, 2)
    with pytest.raises(StatusError):
        ask(engine.attempt(), TestConfig(StatusError(400), "never"))


def test_what_was_said_already_is_not_said_again(engine):
    attempt = engine.attempt()
    with pytest.raises(StatusError):
        ask(attempt, TestConfig(ModelMessageChunk("It is"), StatusError(503), "never"))
    assert attempt.usage().retried_calls == 0


def test_limits_hold(engine):
    limits = CallLimits(rate_limits=(RateLimit(concurrent=1),))
    running, most = [0], [0]

    async def call(messages, context, **_options):
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.01)
        running[0] -= 1
        return answer(prompt_tokens=1, completion_tokens=1)

    config = governed(OwnConfig(call), Scope(engine.attempt(limits=limits)))

    async def several():
        await asyncio.gather(*(Agent("agent", config=config).ask("hello") for _ in range(4)))

    on_a_loop(several())
    assert most == [1]


def test_a_cut_cancels_the_clients_work_and_refuses_the_next_call(engine):
    begun, ended = asyncio.Event(), []

    async def call(messages, context, **_options):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    attempt = engine.attempt()
    config = governed(OwnConfig(call), Scope(attempt))

    async def cut():
        asking = asyncio.ensure_future(Agent("agent", config=config).ask("hello"))
        await begun.wait()
        await asyncio.to_thread(engine.cut, attempt)
        with pytest.raises(TaskStopped):
            await asking
        with pytest.raises(TaskStopped):
            await Agent("agent", config=config).ask("hello")

    on_a_loop(cut())
    assert ended == ["cancelled"]
    assert attempt.was_cut
    assert (attempt.usage().calls, attempt.usage().unreported_calls) == (0, 1)


def test_a_cancelled_ask_is_counted(engine):
    attempt, begun = engine.attempt(), asyncio.Event()

    async def call(messages, context, **_options):
        begun.set()
        await asyncio.sleep(60)

    async def give_up():
        asking = asyncio.ensure_future(Agent("agent", config=governed(OwnConfig(call), Scope(attempt))).ask("hello"))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: attempt.notes.named("ModelCallFinished"))

    on_a_loop(give_up())
    assert attempt.usage().unreported_calls == 1
    assert attempt.notes.events[-1].status == "closed"


@pytest.mark.parametrize("how", [lambda config: config.copy(), copy.copy, copy.deepcopy, lambda config: config])
def test_copies_of_a_users_own_configuration_are_governed_too(engine, how):
    async def call(messages, context, **_options):
        return answer(prompt_tokens=1, completion_tokens=1)

    attempt = engine.attempt()
    config = how(governed(OwnConfig(call), Scope(attempt)))
    on_a_loop(Agent("agent", config=config).ask("hello"))
    assert attempt.usage().calls == 1
    assert attempt.notes.events[-1].endpoint == "https://models.example/v1"
    assert (config.provider, config.model) == ("own", "m")


def test_an_sdk_of_its_own(engine):
    said = {
        "model": "tiny", "message": {"role": "assistant", "content": "fine"}, "done": True,
        "prompt_eval_count": 9, "eval_count": 4, "created_at": "2026-01-01T00:00:00Z", "done_reason": "stop",
    }  # fmt: skip
    with raw_server() as server:
        server.answer = lambda _request, number: http_answer(said, status=503 if number == 1 else 200)
        attempt = engine.attempt()

        async def ask():
            async with httpx.AsyncClient() as client:  # AG2 closes none that it makes itself
                made = governed(OllamaConfig("tiny", host=server.url, http_client=client), Scope(attempt))
                assert isinstance(made, OllamaConfig)
                return (await Agent("agent", config=made.copy(temperature=0.1)).ask("hello")).body

        assert on_a_loop(ask()) == "fine"
        usage = attempt.usage()
        assert (usage.calls, usage.retried_calls, usage.prompt_tokens, usage.completion_tokens) == (1, 1, 9, 4)
        assert attempt.notes.events[-1].endpoint == server.url


@pytest.mark.parametrize("name", SDKS)
def test_an_sdk_that_takes_the_gates_client(engine, name):
    kind, address, more, said = SDKS[name]
    refused = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    with raw_server() as server:
        server.answer = lambda _request, number: http_answer(refused, status=503) if number == 1 else http_answer(said)
        attempt = engine.attempt()
        config = getattr(ag2.config, kind)("m", api_key="sk-" + "a" * 40, **{address: server.url}, **more)
        assert ask(attempt, config, price=(1.0, 2.0)).body == "fine"
        usage = attempt.usage()
        assert (usage.calls, usage.retried_calls, usage.prompt_tokens, usage.completion_tokens) == (1, 1, 7, 3)
        assert (usage.cached_tokens, len(server.requests)) == (2, 2)
        lasting = {"type": "error", "error": {"type": "invalid_request_error", "message": "no such field"}}
        server.answer = http_answer(lasting, status=400)
        with pytest.raises(Exception, match="no such field"):
            ask(attempt, config)
        assert len(server.requests) == 3, "neither the gate nor the SDK tries again"

"""Attempts that go on from recorded calls: agents, teams, nested chats, tools, clients of other providers."""

import threading
from types import SimpleNamespace

import pytest
from attempt_harness import Attempts
from autogen import AssistantAgent, ConversableAgent
from late_tape import LateTape
from ollama_server import OllamaServer, ollama_config
from test_gate_foreign_calls import call as foreign_call

from ag2_parallel.async_ports import ForeignRecord
from ag2_parallel.errors import TaskStopped
from ag2_parallel.testing import ModelServer, Reply, ToolCall


@pytest.fixture
def attempts():
    with Attempts() as made:
        yield made


@pytest.fixture
def server():
    with ModelServer(lambda request: f"answer {request.number} to {request.last_text[-20:]}") as made:
        yield made


def replayed(attempts, tape, again, **fields):
    """A second attempt of a task from the records of the first."""
    first, _ = attempts.run(tape=tape, **fields)
    second, attempt = attempts.run(tape=LateTape(tape.kept), **(fields | again))
    assert first.error is None, first.error.traceback
    assert second.error is None, second.error.traceback
    return first.answer, second.answer, attempt


def test_a_chat_is_replayed_whole(attempts, server):
    first, second, attempt = replayed(
        attempts, LateTape(), {}, prompt="hello", agent_config={"llm_config": server.llm_config()}
    )
    assert first.output == second.output == "answer 0 to hello"
    assert server.ledger.count == 1
    assert attempt.gate.usage().replayed_calls == 1


@pytest.mark.parametrize("form", ["agents", "nested"])
def test_teams_and_nested_chats_are_replayed_whole(attempts, server, form):
    def team(ctx):
        config = ctx.llm_config(server.llm_config())
        agents = [AssistantAgent(name, llm_config=config) for name in ("one", "two", "three")]
        if form == "agents":
            return agents
        outer, inner = agents[:2]
        outer.register_nested_chats(
            [{"recipient": inner, "message": "inside", "max_turns": 2}], trigger=lambda sender: sender is not inner
        )
        return outer

    first, second, attempt = replayed(attempts, LateTape(), {}, prompt="go", agent=team, max_turns=4)
    assert second.output == first.output
    assert attempt.gate.usage().replayed_calls == server.ledger.count >= 2
    assert attempt.gate.usage().calls == 0


def test_a_chat_that_was_cut_halfway_goes_on_from_there(attempts, server):
    """Its tool runs again, and gets the same arguments."""
    server.reply = [Reply(tool_calls=[ToolCall("add", {"a": 2, "b": 3})]), "five"]
    asked = []

    def agent(_ctx):
        made = ConversableAgent("calculator", llm_config=server.llm_config(), human_input_mode="NEVER")

        @made.register_for_llm(description="Add.")
        def add(a: int, b: int) -> int:
            asked.append((a, b))
            return a + b

        return made

    tape = LateTape()
    first, _ = attempts.run(tape=tape, prompt="2 + 3?", agent=agent)
    assert first.error is None, first.error.traceback
    server.ledger.reset()
    again, attempt = attempts.run(tape=LateTape(tape.kept[:1]), prompt="2 + 3?", agent=agent)
    assert first.answer.output == again.answer.output == "five"
    assert asked == [(2, 3)] * 2
    assert server.ledger.count == 1
    usage = attempt.gate.usage()
    assert (usage.replayed_calls, usage.calls) == (1, 1)


def test_ollama_agents_are_replayed(attempts):
    with OllamaServer() as ollama:
        fields = {"prompt": "word", "agent_config": {"llm_config": ollama_config(ollama)}}
        first, second, attempt = replayed(attempts, LateTape(), {}, **fields)
        assert first.output == second.output == "heard word"
        assert len(ollama.asked) == 1
        usage = attempt.gate.usage()
        assert (usage.replayed_calls, usage.calls, usage.total_tokens) == (1, 0, 0)


def test_an_answer_that_cannot_be_written_down_is_not_and_its_call_goes_live(attempts):
    class Client:
        calls = 0

        def __init__(self, config, **_):
            pass

        def create(self, _params):
            Client.calls += 1
            message = SimpleNamespace(content="fine", function_call=None, tool_calls=None)
            return SimpleNamespace(choices=[SimpleNamespace(message=message)], model="own", cost=0)

        def message_retrieval(self, response):
            return [response.choices[0].message.content]

        def cost(self, _response):
            return 0

        @staticmethod
        def get_usage(_response):
            return {}

    made = AssistantAgent("a", llm_config={"config_list": [{"model": "own", "model_client_cls": "Client"}]})
    made.register_model_client(Client)
    tape = LateTape()
    _, second, _ = replayed(attempts, tape, {}, prompt="x", agent=made)
    assert (second.output, Client.calls, tape.kept) == ("fine", 2, [])


TEXT = ForeignRecord({"messages": ["hi"]}, str.encode, bytes.decode)


def test_a_foreign_call_is_replayed_without_its_work_and_two_at_once_find_theirs(attempts):
    tape = LateTape()
    live = attempts.engine.attempt(tape=tape)
    asked = {name: ForeignRecord({"messages": [name]}, str.encode, bytes.decode) for name in ("one", "two")}
    for name, record in asked.items():
        assert foreign_call(live, lambda name=name: name.upper(), record=record) == name.upper()
    again = attempts.engine.attempt(tape=LateTape(reversed(tape.kept)))
    for name, record in asked.items():
        assert foreign_call(again, lambda: pytest.fail("was called"), record=record) == name.upper()
    assert [event.type for event in again.notes.events] == ["ModelCallReplayed"] * 2
    usage = again.usage()
    assert (usage.replayed_calls, usage.calls, usage.total_tokens, usage.cost) == (2, 0, 0, 0)


def test_a_foreign_answer_waits_until_it_is_written_down_and_a_cut_ends_the_wait(attempts):
    tape = LateTape(commits=False)
    attempt = attempts.engine.attempt(tape=tape)
    ended = threading.Event()
    box = []

    def work():
        try:
            box.append(foreign_call(attempt, lambda: "answer", record=TEXT))
        except TaskStopped as stopped:
            box.append(stopped)
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    assert tape.waits_now.wait(10)
    assert not ended.is_set()
    attempts.engine.cut(attempt)
    assert ended.wait(10)
    assert isinstance(box[0], TaskStopped)
    assert attempt.usage().calls == 1

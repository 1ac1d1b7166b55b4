"""`@once` on the tools of agents."""

from typing import Annotated

import pytest
from attempt_harness import Attempts
from autogen import ConversableAgent
from once_tools import happened, keys_of, send, send_async

from ag2_parallel import ParallelAgentRunner, ParallelTask, once
from ag2_parallel.journal.memory import MemoryReceipts
from ag2_parallel.testing import ModelServer, Reply, ToolCall


@pytest.fixture(autouse=True)
def nothing_sent():
    happened.clear()


def tool_agent(server, tool):
    made = ConversableAgent("postman", llm_config=server.llm_config(), human_input_mode="NEVER")
    made.register_for_llm(name=tool.__name__, description="Send a message.")(tool)
    return made


@pytest.mark.parametrize("tool", [send, send_async], ids=["sync", "async"])
def test_an_agents_tool_runs_once_and_its_schema_is_the_functions(tool):
    with ModelServer([Reply(tool_calls=[ToolCall(tool.__name__, {"to": "a"})]), "done"]) as server:
        failed = []

        def accept(result):
            failed.append(result)
            return len(failed) > 1

        def agent(_ctx):
            server.reply = [Reply(tool_calls=[ToolCall(tool.__name__, {"to": "a"})]), "done"]
            return tool_agent(server, tool)

        runner = ParallelAgentRunner(progress=False, retry=2)
        result = runner.run([ParallelTask("t", "go", agent=agent, accept=accept)])["t"]
        assert (result.output, result.attempts, len(happened)) == ("done", 2, 1)
        schema = server.ledger.requests[0].body["tools"][0]["function"]["parameters"]
        assert schema["properties"]["to"]["type"] == "string"
        assert schema["required"] == ["to"]
        assert [m["content"] for m in result.chat_history if m["role"] == "tool"] == ["sent 1"]


def test_an_agent_whose_tools_effect_is_uncertain_fails():
    """AG2 tells a model of a tool's exception; of this one the task fails."""
    with ModelServer([Reply(tool_calls=[ToolCall("send", {"to": "a", "text": "hi"})]), "fine"]) as server:
        receipts = MemoryReceipts("t")
        receipts.begin(keys_of(lambda _ctx: send("a"))[0])
        happened.clear()
        with Attempts() as attempts:
            made = attempts.made(prompt="go", agent=lambda _ctx: tool_agent(server, send), receipts=receipts)
            made.listener.attempt_cut_off = lambda _index, _attempt, error: setattr(made, "told", error)
            made.run()
        assert (made.told.kind, made.told.type) == ("uncertain", "UncertainEffectError")
        assert made.listener.outcome.answer is None
        assert server.ledger.count == 1, "the model is not told"
        assert happened == []


def test_annotations_that_are_text_can_be_read_by_ag2():
    namespace: dict[str, object] = {"once": once, "Annotated": Annotated, "happened": happened}
    source = """
from __future__ import annotations
Amount = int

@once
def pay(amount: Annotated[Amount, "In cents"]) -> Amount:
    happened.append(amount)
    return amount
"""
    exec(compile(source, "pay", "exec"), namespace)
    with ModelServer([Reply(tool_calls=[ToolCall("pay", {"amount": 5})]), "paid"]) as server:
        result = ParallelAgentRunner(progress=False).run(
            [ParallelTask("t", "go", agent=lambda _ctx: tool_agent(server, namespace["pay"]))]
        )["t"]
        assert result.output == "paid"
        assert server.ledger.requests[0].body["tools"][0]["function"]["parameters"]["properties"]["amount"] == {
            "type": "integer",
            "description": "In cents",
        }
        assert happened == [5]

"""What a task is done with is freed at once, without the garbage collector."""

import gc
import weakref

import pytest
from autogen import AssistantAgent, ConversableAgent

from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import ModelServer


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def run(server, *tasks):
    return ParallelAgentRunner(2, progress=False, llm_config=server.llm_config()).run(list(tasks))


made = []
"""Weak references to the copies that were asked, and to who asked them."""


class Noted(AssistantAgent):
    def receive(self, message, sender, *args, **options):
        made.extend(map(weakref.ref, (self, sender)))
        return super().receive(message, sender, *args, **options)


@pytest.mark.usefixtures("no_collector")
def test_copies_are_freed_with_their_task():
    with ModelServer("fine") as server:
        template = Noted("a", llm_config=server.llm_config())
        made.clear()
        results = run(server, *[ParallelTask(f"t{n}", "x", agent=template) for n in range(6)])
    assert results.ok
    assert len(made) == 12
    assert [each() for each in made if each() is not None] == []


def test_an_agent_that_its_factory_keeps_is_as_ag2_made_it():
    kept = []

    def factory(ctx):
        kept.append(AssistantAgent("a", llm_config=ctx.llm_config(config), max_consecutive_auto_reply=7))
        return kept[-1]

    with ModelServer("fine") as server:
        config = server.llm_config()
        assert run(server, ParallelTask("t", "x", agent=factory)).ok
    agent, sender = kept[0], ConversableAgent("s", llm_config=False)
    agent.update_max_consecutive_auto_reply(3)
    assert agent.max_consecutive_auto_reply(sender) == 3
    assert "_match_trigger" not in vars(agent)


def test_what_accept_looks_at_is_whole():
    seen = []

    def factory(ctx):
        agent = ConversableAgent("a", llm_config=ctx.llm_config(config))
        agent.register_reply(
            lambda _sender: True,
            lambda recipient, messages, sender, config: seen.extend([sender, recipient]) or (False, None),
        )
        return agent

    def accept(result):
        user, agent = seen[:2]
        return [message["content"] for message in user.chat_messages[agent]] == ["x", result.output]

    with ModelServer("fine") as server:
        config = server.llm_config()
        result = run(server, ParallelTask("t", "x", agent=factory, accept=accept))["t"]
    assert result.ok, result.error

"""Agents, and what else a task's code keeps, once the run is over: a clear error and never a hang."""

import asyncio

import pytest

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import ModelServer

OVER = "its run are over"
MESSAGE = [{"role": "user", "content": "x"}]


def runner(server):
    return ParallelAgentRunner(2, progress=False, llm_config=server.llm_config())


@pytest.fixture
def server():
    with ModelServer("fine") as made:
        yield made


def kept_classic(server, direct):
    from autogen import AssistantAgent

    kept = []

    def factory(ctx):
        kept.append(AssistantAgent("a", llm_config=ctx.llm_config(server.llm_config(direct=direct))))
        return kept[-1]

    return factory, kept


@pytest.mark.parametrize("direct", [True, False])
def test_an_agent_that_is_asked_after_the_run_says_that_it_is_over(server, direct):
    factory, kept = kept_classic(server, direct=direct)
    assert runner(server).run([ParallelTask("t", "x", agent=factory)]).ok
    with pytest.raises(ConfigurationError, match=f'task "t" and {OVER}'):
        kept[0].generate_reply(MESSAGE)


def test_while_the_runner_is_open_it_answers(server):
    factory, kept = kept_classic(server, direct=True)
    with runner(server) as opened:
        assert opened.run([ParallelTask("t", "x", agent=factory)]).ok
        assert "fine" in str(kept[0].generate_reply(MESSAGE))
    with pytest.raises(ConfigurationError, match=OVER):
        kept[0].generate_reply(MESSAGE)


def test_it_is_no_template_for_another_task(server):
    factory, kept = kept_classic(server, direct=True)
    assert runner(server).run([ParallelTask("t", "x", agent=factory)]).ok
    with pytest.raises(
        ConfigurationError, match=r'^task "other": agent "a" was made by a factory for another task[^\n]*$'
    ):
        runner(server).run([ParallelTask("other", "x", agent=kept[0])])


def test_an_ag2_agent_too(server):
    import ag2
    from ag2.config import OpenAIConfig

    agent = ag2.Agent("a", config=OpenAIConfig(model="scripted", api_key="none", base_url=f"{server.base_url}/v1"))
    assert runner(server).run([ParallelTask("t", "x", agent=lambda: agent)]).ok
    with pytest.raises(ConfigurationError, match=OVER):
        asyncio.run(agent.ask("x"))
    with pytest.raises(ConfigurationError, match=r'^task "other": agent "a" was made by a factory[^\n]*$'):
        runner(server).run([ParallelTask("other", "x", agent=agent)])

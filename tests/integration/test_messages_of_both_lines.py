"""What a caller is told who mixes the two lines of AG2, or takes a form of one for the other."""

import pytest

pytest.importorskip("autogen")
pytest.importorskip("ag2")

from ag2 import Agent
from ag2.config import OpenAIConfig

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask, RateLimit
from ag2_parallel.testing import ModelServer

CONFIG = OpenAIConfig(model="m", api_key="sk-0000000000000000")


def refused(task, **options):
    with pytest.raises(ConfigurationError) as caught:
        ParallelAgentRunner(progress=False, **options).run([task])
    return str(caught.value)


@pytest.mark.parametrize("form", [list, tuple])
def test_agents_of_ag2_1_in_a_list_or_pair_are_shown_the_way_to_a_team(form):
    agents = form(Agent(name, config=CONFIG) for name in ("a", "b"))
    assert "use WorkflowTeam([...])" in refused(ParallelTask("t", "x", agent=agents))

    results = ParallelAgentRunner(progress=False).run([ParallelTask("t", "x", agent=lambda: agents)])
    assert (results["t"].error.kind, results["t"].attempts) == ("configuration", 1)
    assert "use WorkflowTeam([...])" in results["t"].error.message


def test_a_classic_agent_config_beside_a_runner_of_ag2_1():
    told = refused(ParallelTask("t", "x", {"system_message": "Be brief."}), llm_config=CONFIG)
    assert "that of the runner is of the other line: OpenAIConfig of AG2 1.x" in told
    assert '"type": "ag2.Agent"' in told


def test_a_configuration_of_ag2_1_in_a_classic_agent_config():
    told = refused(ParallelTask("t", "x", {"llm_config": CONFIG}))
    assert "agent_config: llm_config is of the other line" in told
    assert "sk-0000" not in told


@pytest.mark.parametrize("streaming", [False, True])
def test_an_agent_of_ag2_1_refused_by_a_rate_limit_says_so_first(streaming):
    with ModelServer("x") as server:
        config = OpenAIConfig(model="m", api_key="k", base_url=server.base_url, streaming=streaming)
        runner = ParallelAgentRunner(
            llm_config=config, rate_limits=RateLimit(requests_per_minute=1), timeout=10, progress=False
        )
        (failed,) = runner.run([ParallelTask("a", "x"), ParallelTask("b", "x")]).failed
        assert failed.error.kind == "rate_limit"
        assert str(failed.error).startswith("NotAdmittedError: the call was not sent: ")

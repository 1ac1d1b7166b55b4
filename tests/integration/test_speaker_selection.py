"""What model chooses who speaks next, where a team's manager has none."""

import re

import pytest
from autogen import AssistantAgent, GroupChat, GroupChatManager
from autogen.agentchat.group.patterns import AutoPattern

from ag2_parallel import ConfigurationError, ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import ModelServer


def choose_last(request):
    """Chooses the last of the agents it is told of; answers everything else with the model's name."""
    roles = re.search(r"select the next role from \[(.*?)\]", str(request.messages))
    return roles[1].split(",")[-1].strip(" '\"\\") if roles else f"said by {request.model}"


def members(llm_config):
    return [AssistantAgent(name, llm_config=llm_config, default_auto_reply="go on") for name in ("a", "b", "c")]


def teams(llm_config):
    """A manager and a Pattern without a model of their own."""
    agents = members(llm_config)
    return {"manager": GroupChatManager(GroupChat(agents)), "pattern": AutoPattern(agents[0], agents)}


def run(teams, llm_config=None, turns=4):
    runner = ParallelAgentRunner(llm_config=llm_config, progress=False)
    return runner.run([ParallelTask(name, "Go.", agent=team, max_turns=turns) for name, team in teams.items()])


@pytest.mark.parametrize("runners", [False, True], ids=["a member's", "the runner's"])
def test_a_members_model_chooses_else_the_runners(runners):
    with ModelServer(choose_last) as server:
        chooser = server.llm_config(model="chooser")
        given = teams(False if runners else chooser)
        results = run(given, chooser if runners else server.llm_config(model="unused"))
        assert [result.status for result in results.values()] == ["succeeded", "succeeded"], results.errors
        assert [message["name"] for message in results["manager"].chat_history] == ["user", "c", "c", "c"]
        assert [message["name"] for message in results["pattern"].chat_history] == ["_User", "a", "c", "c"]
        assert {request.model for request in server.ledger.requests} == {"chooser"}
        assert results.usage.calls == server.ledger.count


def test_the_callers_team_stays_as_it_is():
    with ModelServer(choose_last) as server:
        given = teams(server.llm_config())
        run(given)
        assert given["manager"].llm_config is False
        assert given["manager"].client is None
        assert given["manager"].groupchat.select_speaker_auto_llm_config is None
        assert given["pattern"].group_manager_args == {}


def test_the_manager_of_a_pair_and_one_from_a_factory_have_a_model_too():
    with ModelServer(choose_last) as server:
        agents = members(False)
        results = run(
            {
                "pair": (agents[0], GroupChatManager(GroupChat(agents, max_round=3))),
                "factory": lambda: teams(False)["manager"],
            },
            server.llm_config(),
        )
        assert [result.status for result in results.values()] == ["succeeded", "succeeded"], results.errors
        assert results.usage.calls == server.ledger.count


def test_a_team_that_nobody_can_choose_in_is_refused_before_anything_starts():
    with pytest.raises(ConfigurationError) as caught:
        run(teams(False))
    manager, pattern = caught.value.problems
    assert "select_speaker_auto_llm_config" in manager
    assert "group_manager_args" in pattern
    assert all("the runner's llm_config" in problem for problem in caught.value.problems)

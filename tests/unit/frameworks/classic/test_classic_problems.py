"""What is refused before anything starts, with the task and the right key named."""

import subprocess
import sys

import pytest
from autogen import ConversableAgent, GroupChat, LLMConfig

from ag2_parallel.frameworks.classic.build import agent_name, fingerprint
from ag2_parallel.frameworks.classic.framework import ClassicFramework
from ag2_parallel.tasks import ParallelTask

LLM = {"model": "m", "api_key": "sk-secret-0123456789", "base_url": "http://localhost/v1"}


class Own(ConversableAgent):
    """Takes what ConversableAgent does not."""

    def __init__(self, name, mood, **arguments):
        super().__init__(name, **arguments)
        self.mood = mood


def problems(config, llm_config=None, **fields):
    return ClassicFramework(llm_config).problems(ParallelTask("case 7", "p", config, **fields), None)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"sytem_message": "x"}, "unknown key 'sytem_message'; did you mean \"system_message\"?"),
        ({"tools": []}, 'did you mean "functions"?'),
        ({"zzzz": 1}, "known are type, name"),
        ({"name": ""}, "name must be text that is not blank, not ''"),
        ({"name": "two words"}, 'use "two_words"'),
        ({"system_message": 3}, "system_message must be text"),
        ({"human_input_mode": "SOMETIMES"}, 'one of "NEVER", "TERMINATE", "ALWAYS"'),
        ({"max_consecutive_auto_reply": -1}, "whole number from 0, not -1"),
        ({"max_consecutive_auto_reply": True}, "whole number from 0"),
        ({"functions": ["name"]}, "a function or a list of functions, not a list"),
        ({"function_map": {"f": 1}}, "a mapping from names to functions"),
        ({"is_termination_msg": "TERMINATE"}, "a function of the message"),
        ({"code_execution_config": True}, "False or a mapping"),
        ({"chat_messages": {}}, "give earlier messages in prompt"),
        ({"type": "AsistantAgent"}, 'did you mean "AssistantAgent"?'),
        ({"type": "no_such_module:Agent"}, "cannot be imported"),
        ({"type": "builtins:dict"}, "no subclass of ConversableAgent"),
        ({"llm_config": "gpt"}, "llm_config is text"),
        ({"llm_config": {"config_list": []}}, "llm_config is not valid"),
        ({"llm_config": LLM | {"temperature": 7}}, "temperature: Input should be less than or equal to 1"),
        ({"llm_config": {"config_list": [LLM], "max_retries": 3}}, "put 'max_retries' into the entries of config_list"),
        ({"llm_config": {"config_list": [{"api_key": "x"}]}}, "model: Field required"),
        ({"llm_config": {"model": "m", "baseurl": "x"}}, "the key 'baseurl' is not known; did you mean 'base_url'?"),
        ({"llm_config": {"config_list": [{"model": "m", "API-Key": "sk-secret"}]}}, "did you mean 'api_key'?"),
        ({"llm_config": 3}, "llm_config is not valid"),
        ({"llm_config": False}, "could answer nothing"),
        ({}, "neither has the runner"),
    ],
)
def test_configurations(config, told):
    if "llm_config" not in config and config:
        config = config | {"llm_config": LLM}
    (problem,) = problems(config)
    assert problem.startswith('task "case 7": agent_config')
    assert told in problem
    assert "sk-secret" not in problem


def test_every_problem_is_told_at_once():
    assert len(problems({"sytem_message": "x", "human_input_mode": "no", "silent": 3})) == 3
    (problem,) = problems([("name", "a")])
    assert "is a list" in problem


@pytest.mark.parametrize(
    "config",
    [
        {"llm_config": LLM},
        {"llm_config": [LLM, LLM]},
        {"llm_config": {"config_list": LLM, "temperature": 0.5}},
        {"llm_config": LLMConfig(LLM)},
        {"llm_config": False, "default_auto_reply": "yes"},
        {"type": "UserProxyAgent", "name": "u", "llm_config": LLM, "code_execution_config": False},
        {"type": "autogen:ConversableAgent", "llm_config": LLM},
        {"type": f"{__name__}:Own", "mood": "calm"},
    ],
)
def test_configurations_that_are_fine(config):
    assert problems(config) == []


def test_tasks_without_an_agent_need_the_runners_model():
    assert "no agent_config, agent or run" in problems(None)[0]
    assert problems(None, LLM) == []
    assert problems({}, LLM) == []
    assert "llm_config of the runner" in problems(None, {"config_list": []})[0]


def agents(*names):
    return [ConversableAgent(name, llm_config=False) for name in names]


def test_teams():
    def told(agent, **fields):
        return ClassicFramework().problems(ParallelTask("t", agent=agent, **fields), agent)

    one, two = agents("one", "two")
    assert told([one, two]) == told((one, two)) == told(one, max_turns=1) == []
    assert "the same agent" in told((one, one))[0]
    assert "not a list" in told([one])[0]
    assert "doubled: one" in told([one, *agents("one")])[0]
    assert "before anybody has spoken" in told([one, two], max_turns=1)[0]
    assert "selects speakers with a model" in told(GroupChat([one, two], []))[0]
    assert told(GroupChat([one, two], [], speaker_selection_method="random")) == []


def test_how_a_chat_is_read():
    assert "summary_method 'best'" in problems({"llm_config": LLM}, summary_method="best")[0]
    assert "output_type" in problems({"llm_config": LLM}, output_type=object())[0]
    assert "makes none" in problems({"llm_config": LLM}, output_type=int, summary_method=None)[0]


def test_names_and_fingerprints():
    assert agent_name("Case 7: fièvre!") == "Case_7__fi_vre_"
    assert len(agent_name("x" * 200)) == 64
    assert fingerprint({"a": [1, {"b": "c"}]}) == fingerprint({"a": [1, {"b": "c"}]})
    assert fingerprint({"a": 1}) != fingerprint({"a": True})
    assert fingerprint({"a": print}) == fingerprint({"a": print}) != fingerprint({"a": len})


def test_asking_what_something_is_imports_nothing():
    code = (
        "import sys; from ag2_parallel.frameworks.classic.framework import ClassicFramework;"
        "from ag2_parallel.tasks import ParallelTask; framework = ClassicFramework();"
        "assert not framework.recognises(object()) and not framework.recognises([object()]);"
        "print('autogen' in sys.modules, 'openai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_warming_up_is_quiet_and_pays_for_the_first_chat():
    code = (
        "import sys; from ag2_parallel.frameworks.classic.framework import ClassicFramework;"
        "framework = ClassicFramework(); framework.warm_up(); before = set(sys.modules); framework.warm_up();"
        "assert 'openai.types.chat.chat_completion' in before and set(sys.modules) == before; print('warm')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("warm\n", "")

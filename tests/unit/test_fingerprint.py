"""What counts as the same task from one life of a run to the next."""

import functools
import subprocess
import sys

import pytest
from pydantic import BaseModel

from ag2_parallel import ParallelTask, Template
from ag2_parallel.fingerprint import fingerprint

CONFIG = {
    "system_message": "You are a cardiologist.",
    "llm_config": {
        "config_list": [
            {"model": "m", "api_key": "sk-live-0123456789", "base_url": "http://u:pw@host:1/v1", "price": [0.1, 0.2]}
        ],
        "temperature": 0.5,
    },
}


class Verdict(BaseModel):
    sick: bool


class VerdictWithReason(BaseModel):
    sick: bool
    reason: str


def build(ward, doctor="house"):
    return ward, doctor


def entry(**changes):
    [first] = CONFIG["llm_config"]["config_list"]
    return {**CONFIG, "llm_config": {**CONFIG["llm_config"], "config_list": [{**first, **changes}]}}


def task(prompt="a case", **fields):
    return ParallelTask("t", prompt, **({"agent_config": CONFIG} | fields))


SAME = {
    "another key": task(agent_config=entry(api_key="sk-live-9876543210")),
    "another price": task(agent_config=entry(price=[1, 2])),
    "other credentials of the endpoint": task(agent_config=entry(base_url="http://v:other@host:1/v1")),
    "a cache seed": task(agent_config=entry(cache_seed=41)),
    "limits": task(timeout=5, attempt_timeout=2, retry=3, priority=7, group="g"),
    "metadata": task(metadata={"row": 7}),
    "another name": ParallelTask("u", "a case", agent_config=CONFIG),
    "the order of keys": task(agent_config=dict(reversed(CONFIG.items()))),
}

OTHER = {
    "another prompt": task("another case"),
    "a template of that text": task(Template("a case")),
    "another model": task(agent_config=entry(model="n")),
    "another server": task(agent_config=entry(base_url="http://host:2/v1")),
    "another temperature": task(agent_config={**CONFIG, "llm_config": {**CONFIG["llm_config"], "temperature": 0.7}}),
    "another system message": task(agent_config={**CONFIG, "system_message": "You are a nurse."}),
    "a context": task(context={"timeout": 1}),
    "turns": task(max_turns=3),
    "an output type": task(output_type=Verdict),
    "a dependency": task(depends_on=["u"]),
}


@pytest.mark.parametrize("other", SAME.values(), ids=SAME)
def test_what_does_not_change_the_work_changes_nothing(other):
    assert fingerprint(other) == fingerprint(task())


@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER)
def test_what_changes_the_work_does(other):
    assert fingerprint(other) != fingerprint(task())


def test_a_context_counts_with_all_its_keys():
    assert fingerprint(task(context={"timeout": 1})) != fingerprint(task(context={"timeout": 2}))


def test_an_output_type_counts_by_its_schema():
    assert fingerprint(task(output_type=Verdict)) != fingerprint(task(output_type=VerdictWithReason))
    assert fingerprint(task(output_type=list[int])) != fingerprint(task(output_type=list[str]))


def of(agent):
    return fingerprint(ParallelTask("t", "p", agent=agent))


def closing_over(ward):
    def make():
        return build(ward)

    return make


def test_a_factory_counts_with_its_closure_and_arguments_and_never_its_code():
    assert of(closing_over(1)) == of(closing_over(1)) != of(closing_over(2))
    assert of(functools.partial(build, 1)) == of(functools.partial(build, 1)) != of(functools.partial(build, 2))
    assert of(functools.partial(build, 1)) != of(functools.partial(build, 1, doctor="wilson"))
    assert of("wards:build") != of(build)


def test_the_runners_configuration_counts_where_the_task_has_none():
    plain = ParallelTask("t", "p")
    assert fingerprint(plain, {"model": "m"}) != fingerprint(plain, {"model": "n"})
    assert fingerprint(task(), {"model": "m"}) == fingerprint(task(), {"model": "n"})


def test_the_salt_keeps_digests_of_two_runs_apart():
    assert fingerprint(task(), salt="one") != fingerprint(task(), salt="two")


SCRIPT = """
import sys
from ag2_parallel import ParallelTask
from ag2_parallel.fingerprint import fingerprint
from autogen import AssistantAgent
agent = AssistantAgent("a", llm_config={"config_list": [{"model": "m", "api_key": "x"}]}, system_message=sys.argv[1])
print(fingerprint(ParallelTask("t", {"c", "b", "a"}, agent=agent, context={"wards": {"x", "y", "z"}})))
"""


def in_another_process(system_message):
    done = subprocess.run([sys.executable, "-c", SCRIPT, system_message], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_it_is_the_same_in_another_process_also_for_a_live_agent():
    first, second, other = map(in_another_process, ["s", "s", "another"])
    assert first == second != other

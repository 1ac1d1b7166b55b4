"""Factories must return fresh objects; shared tools are noticed once."""

import pytest

from ag2_parallel import SharedAgentError
from ag2_parallel.workers.claims import Claims


class Agent:
    name = "doctor"


def test_an_object_of_another_task_is_refused_every_time():
    claims, agent = Claims(), Agent()
    claims.claim(agent, index=0, task="a")
    claims.claim(agent, index=0, task="a")
    for _ in range(2):
        with pytest.raises(SharedAgentError, match=r'Agent "doctor".*task "a".*fresh'):
            claims.claim(agent, index=1, task="b")


def test_a_dead_objects_place_in_memory_may_be_taken():
    claims = Claims()
    for index in range(200):
        claims.claim(Agent(), index=index, task=str(index))


def test_lists_are_told_apart_too():
    claims, pair = Claims(), [Agent()]
    claims.claim(pair, index=0, task="a")
    with pytest.raises(SharedAgentError, match="a list"):
        claims.claim(pair, index=1, task="b")


def test_a_shared_tool_is_noticed_once_while_both_run():
    claims, tool = Claims(), object()
    assert not claims.hold(tool, index=0)
    assert claims.hold(tool, index=1)
    assert not claims.hold(tool, index=2)


def test_one_after_another_is_no_sharing():
    claims, tool = Claims(), object()
    assert not claims.hold(tool, index=0)
    claims.release(0)
    assert not claims.hold(tool, index=1)

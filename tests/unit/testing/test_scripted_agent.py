"""A scripted agent answers as told and honours the stop."""

import copy
import threading
import time

import pytest

from ag2_parallel.errors import TaskStopped
from ag2_parallel.tasks import ParallelTask, TaskContext
from ag2_parallel.testing import ScriptedAgent


class Services:
    """What an attempt's machinery gives a context: here only the stop signal."""

    def __init__(self):
        self.stopped = threading.Event()
        self.checked = threading.Event()

    def check(self):
        self.checked.set()
        if self.stopped.is_set():
            raise TaskStopped("deadline")


@pytest.fixture
def services():
    return Services()


@pytest.fixture
def context(services):
    def made(attempt=1, name="a task"):
        return TaskContext(
            ParallelTask(name=name),
            index=0,
            attempt=attempt,
            context={},
            upstream={},
            resources={},
            services=services,
        )

    return made


def test_a_text_is_the_answer(context):
    agent = ScriptedAgent("done")
    assert [agent.run_task(context(name=name)) for name in "ab"] == ["done", "done"]
    assert agent.calls == [("a", 1), ("b", 1)]
    assert repr(agent) == "ScriptedAgent('done', 2 calls)"


def test_a_function_is_asked(context):
    assert ScriptedAgent(lambda ctx: {"of": ctx.name}).run_task(context()) == {"of": "a task"}


def test_a_sequence_goes_by_attempt_and_raises_its_exceptions(context):
    failure = ValueError("first")
    agent = ScriptedAgent([failure, "second", "last"])
    with pytest.raises(ValueError, match="first") as caught:
        agent.run_task(context(1))
    assert [agent.run_task(context(attempt)) for attempt in (2, 3, 4, 9)] == ["second", "last", "last", "last"]
    assert agent.calls == [("a task", attempt) for attempt in (1, 2, 3, 4, 9)]
    assert caught.value is not failure
    assert failure.__traceback__ is None


class Uncopyable(Exception):
    def __init__(self, *, detail):
        super().__init__("needs detail")
        self.detail = detail


@pytest.mark.parametrize("error", [Uncopyable(detail=1), Uncopyable, KeyError("k")])
def test_an_error_is_raised_in_place_of_the_answer(context, error):
    wanted = TypeError if error is Uncopyable else type(error)
    with pytest.raises(wanted):
        ScriptedAgent("never", error=error).run_task(context())


def test_it_waits_its_delay(context):
    began = time.monotonic()
    assert ScriptedAgent("late", delay=0.05).run_task(context()) == "late"
    assert time.monotonic() - began >= 0.05


def test_a_stop_ends_the_wait(context, services):
    agent, stopped = ScriptedAgent("never", delay=600), []

    def run():
        try:
            agent.run_task(context())
        except TaskStopped as stop:
            stopped.append(stop.reason)

    running = threading.Thread(target=run)
    running.start()
    assert services.checked.wait(20)
    services.stopped.set()
    running.join(20)
    assert stopped == ["deadline"]


def test_a_copy_is_the_agent_itself():
    agent = ScriptedAgent("x")
    assert copy.copy(agent) is agent
    assert copy.deepcopy([agent])[0] is agent


def test_wrong_replies_are_refused():
    with pytest.raises(TypeError, match="cannot reply with int"):
        ScriptedAgent(3)
    with pytest.raises(ValueError, match="empty sequence"):
        ScriptedAgent([])

"""Tasks whose work is a function."""

import asyncio
from functools import partial
from types import SimpleNamespace

import pytest

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.frameworks.failures import InvalidAnswerError
from ag2_parallel.frameworks.functions import FunctionFramework
from ag2_parallel.ports import Draft, Work
from ag2_parallel.tasks import ParallelTask


def run(function, agent=None, **fields):
    checks = []
    scope = SimpleNamespace(draft=Draft(), check=lambda: checks.append(1), run_coroutine=asyncio.run)
    ctx = SimpleNamespace(name="t", prompt="p", context={"case": 7})
    task = ParallelTask("t", run=function, **fields)
    answer = FunctionFramework().run(Work(task=task, agent=agent, fresh=False, ctx=ctx, scope=scope))
    assert len(checks) == 2
    assert scope.draft.context == {"case": 7}
    return answer


async def later(ctx):
    await asyncio.sleep(0)
    return ctx.prompt


class Worker:
    def run_task(self, ctx):
        return [ctx.prompt]


def test_what_a_function_returns_is_the_output():
    answer = run(lambda ctx: ctx.prompt * 2)
    assert (answer.output, answer.summary, answer.stop_reason) == ("pp", "pp", "completed")
    assert run(later).output == "p"
    assert run(lambda: 3).output == 3
    assert run(partial(later)).output == "p"
    assert run(None, Worker()).output == ["p"]
    error = ValueError("returned, not raised")
    assert run(lambda _: error).output is error


def test_an_output_type():
    assert run(lambda _: "[1]", output_type=list[int]).output == [1]
    with pytest.raises(InvalidAnswerError):
        run(lambda _: "one", output_type=int)


def test_what_is_recognised():
    framework = FunctionFramework()
    assert framework.recognises(Worker())
    assert not any(map(framework.recognises, (Worker, later, None, "a:b")))
    framework.warm_up()
    with pytest.raises(ConfigurationError):
        framework.routed({}, None)


def two(ctx, more): ...


def generator(ctx):
    yield 1


@pytest.mark.parametrize(
    ("function", "problem"),
    [(two, "more"), (generator, "generator"), (lambda *, key: key, "key"), (3, "not a function")],
)
def test_functions_that_cannot_be_run(function, problem):
    (told,) = FunctionFramework().problems(ParallelTask("t", run=function), None)
    assert told.startswith('task "t": run ')
    assert problem in told


@pytest.mark.parametrize("function", [later, lambda: 1, "module:name", print, Worker().run_task])
def test_functions_that_can(function):
    assert FunctionFramework().problems(ParallelTask("t", run=function), None) == []


def test_an_object_with_run_task_and_a_wrong_output_type():
    assert FunctionFramework().problems(ParallelTask("t", agent=Worker()), Worker()) == []
    (told,) = FunctionFramework().problems(ParallelTask("t", run=later, output_type=object()), None)
    assert "output_type" in told

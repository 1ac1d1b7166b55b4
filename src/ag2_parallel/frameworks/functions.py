"""Tasks whose work is a function of their own, sync or async, or an object with `run_task(ctx)`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.frameworks import output_types
from ag2_parallel.ports import Answer

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ag2_parallel.ports import AttemptScope, Work
    from ag2_parallel.tasks import ParallelTask


class FunctionFramework:
    """Runs `run=` functions and objects with a `run_task(ctx)` method."""

    name = "functions"

    def recognises(self, agent: object) -> bool:
        """An object, not a class, with a `run_task` method."""
        return not isinstance(agent, type) and callable(getattr(type(agent), "run_task", None))

    def problems(self, task: ParallelTask, agent: object) -> list[str]:
        """A function that cannot be called with the `TaskContext`, and an `output_type` that is none."""
        function = task.run if task.run is not None else agent
        found = []
        if not isinstance(function, str):
            found += _call_problems(task.name, function)
        if task.output_type is not None and (problem := output_types.type_problem(task.output_type)):
            found.append(f'task "{task.name}": output_type {problem}')
        return found

    def models(self, task: ParallelTask, agent: object) -> list[tuple[str, str, bool]]:  # noqa: ARG002 - the port's
        """Nothing is known before a function runs."""
        return []

    def warm_up(self) -> None:
        """Nothing to warm up."""

    def run(self, work: Work) -> Answer:
        """Call the function on the calling thread; a coroutine runs on the attempt's private loop."""
        target: Any = work.agent if work.agent is not None else work.task.run
        function = target.run_task if self.recognises(target) else target
        work.scope.draft.context = work.ctx.context
        work.scope.check()
        value = function(work.ctx) if _call_of(function).with_context else function()
        if inspect.isawaitable(value):
            value = work.scope.run_coroutine(_awaited(value))
        work.scope.check()
        if work.task.output_type is not None:
            value = output_types.validated_value(work.task.output_type, value)
        summary = value if isinstance(value, str) else None
        work.scope.draft.summary = summary
        return Answer(output=value, summary=summary, stop_reason="completed")

    def routed(self, config: Any, scope: AttemptScope) -> Any:  # noqa: ARG002 - a Protocol's signature
        """Functions have no model configuration; the frameworks that do route it.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("a plain function has no model configuration of its own to route")


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


class _Call(NamedTuple):
    """How a function is called: with the context or with nothing, and why that cannot be, if it cannot."""

    with_context: bool
    obstacle: str | None


_known: WeakKeyDictionary[Any, _Call] = WeakKeyDictionary()
"""Plain functions; ten thousand tasks often have one of them, and to read its signature costs more than all else."""


def _call_of(function: Any) -> _Call:
    if not inspect.isfunction(function):
        return _found(function)
    known = _known.get(function)
    if known is None:
        known = _known[function] = _found(function)
    return known


def _found(function: Any) -> _Call:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return _Call(with_context=True, obstacle=None)  # nobody can tell
    with_context = any(parameter.kind in _POSITIONAL for parameter in signature.parameters.values())
    try:
        signature.bind(*([None] if with_context else []))
    except TypeError as error:
        return _Call(with_context, str(error))
    return _Call(with_context, None)


def _call_problems(name: str, function: Any) -> list[str]:
    if hasattr(type(function), "run_task"):
        function = function.run_task
    if not callable(function):
        return [f'task "{name}": run is {function!r}, not a function; give one that takes the TaskContext']
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return [f'task "{name}": run is a generator, which would run nothing; return the value instead of yielding it']
    obstacle = _call_of(function).obstacle
    return [] if obstacle is None else [f'task "{name}": run cannot be called with the TaskContext alone ({obstacle})']

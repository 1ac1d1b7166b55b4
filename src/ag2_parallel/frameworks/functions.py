"""Tasks whose work is a function of their own, sync or async, or an object with `run_task(ctx)`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any
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
        value = function(work.ctx) if _takes_context(function) else function()
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


_known_signatures: WeakKeyDictionary[Any, inspect.Signature | None] = WeakKeyDictionary()
"""Signatures of plain functions; ten thousand tasks often have one of them, and reading it costs more than all else."""


def _signature(function: Any) -> inspect.Signature | None:
    """What a call takes; None where nobody can tell."""
    plain = inspect.isfunction(function)
    if plain and function in _known_signatures:
        return _known_signatures[function]
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        found = None
    if plain:
        _known_signatures[function] = found
    return found


def _takes_context(function: Any) -> bool:
    signature = _signature(function)
    if signature is None:
        return True
    positional = {
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    }
    return any(parameter.kind in positional for parameter in signature.parameters.values())


def _call_problems(name: str, function: Any) -> list[str]:
    if hasattr(type(function), "run_task"):
        function = function.run_task
    if not callable(function):
        return [f'task "{name}": run is {function!r}, not a function; give one that takes the TaskContext']
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return [f'task "{name}": run is a generator, which would run nothing; return the value instead of yielding it']
    signature = _signature(function)
    if signature is None:
        return []
    try:
        signature.bind(*([None] if _takes_context(function) else []))
    except TypeError as error:
        return [f'task "{name}": run cannot be called with the TaskContext alone ({error})']
    return []

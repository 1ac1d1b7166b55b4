"""`@once`: a tool whose effect happens once in a task, whatever becomes of its attempts and of the process.

::

    call ─► begin: is there a receipt? ── yes ──► the stored value, and the tool is not called
                  │ no: the intent is written down
                  ▼
            the tool ── returned ──► finish: the receipt is written down ─► the value
                  ├──── raised ────► withdraw: the intent is forgotten, it may be tried again
                  └──── cut ───────► nothing: the intent stays, and whether it happened nobody knows
"""

from __future__ import annotations

import contextvars
import functools
import inspect
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, Protocol, TypeVar, overload

from ag2_parallel.effect_values import ReturnValues, arguments_digest
from ag2_parallel.errors import ConfigurationError, UncertainEffectError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ag2_parallel.records import Receipt

P = ParamSpec("P")
R = TypeVar("R")


class Effects(Protocol):
    """The effects of one attempt; from the task's own threads."""

    def numbered(self, call: str) -> str:
        """A key for the next call that is described so."""

    def begin(self, key: str) -> Receipt | None:
        """Write the intent down; a receipt: it has happened. Raises `UncertainEffectError`, and `TaskStopped`."""

    def finish(self, key: str, value: str) -> None:
        """Write the receipt down."""

    def withdraw(self, key: str) -> None:
        """Forget the intent."""

    def fail(self, error: Exception) -> NoReturn:
        """Make the task fail with `error`, and raise the stop signal: AG2 would tell a model of an exception."""


EFFECTS: Final[contextvars.ContextVar[Effects | None]] = contextvars.ContextVar("ag2_parallel_effects", default=None)
"""The effects of the attempt whose code is running; None outside a run."""


@overload
def once(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def once(*, ignore: Iterable[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def once(function: Any = None, /, *, ignore: Iterable[str] = ()) -> Any:
    """Let the effect of a tool happen once in a task: over the attempts of a run, and over resumes from a journal.

    A call is known again by the task, the tool's qualified name, its arguments and which of such calls in its attempt it
    is. Where an earlier attempt made it, the value it returned then is returned, and the tool is not called. Where an
    earlier attempt began it and was cut before it returned, the task fails with `UncertainEffectError`. A tool that
    raises an exception by itself has had no effect, and may be called again.

    Outside a run the tool is the plain function. Works for functions and methods, sync and async; of a method the
    object is no part of the arguments.

    Args:
        function: The tool. Its return type should be annotated: values come back as what pydantic makes of it. Without
            an annotation they must be data that JSON can hold, and come back as JSON gives them.
        ignore: Names of parameters that say nothing about the effect, such as a connection.

    Raises:
        TypeError: It is no function, or a generator.
    """
    if function is None:
        return lambda given: _decorated(given, frozenset(ignore))
    return _decorated(function, frozenset(ignore))


def _decorated(function: Any, ignore: frozenset[str]) -> Any:
    if not inspect.isroutine(function) or isinstance(function, staticmethod | classmethod):
        raise TypeError(f"@once goes on a function, below @staticmethod and @classmethod, not on {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"@once: {function.__qualname__} is a generator, and its effects have no one moment")
    tool = _Tool(function, ignore)
    return tool.wrapped_by((_async if inspect.iscoroutinefunction(function) else _sync)(function, tool))


def _sync(function: Callable[..., Any], tool: _Tool) -> Any:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        effects = tool.effects()
        if effects is None:
            return function(*args, **kwargs)
        key, receipt = tool.begin(effects, args, kwargs)
        if receipt is not None:
            return tool.stored(effects, receipt)
        try:
            value = function(*args, **kwargs)
        except Exception:
            effects.withdraw(key)
            raise
        return tool.finish(effects, key, value)

    return called


def _async(function: Callable[..., Any], tool: _Tool) -> Any:
    @functools.wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        effects = tool.effects()
        if effects is None:
            return await function(*args, **kwargs)
        key, receipt = tool.begin(effects, args, kwargs)
        if receipt is not None:
            return tool.stored(effects, receipt)
        try:
            value = await function(*args, **kwargs)
        except Exception:
            effects.withdraw(key)
            raise
        return tool.finish(effects, key, value)

    return called


class _Tool:
    """A decorated function: how its calls are known again, and its values stored."""

    def __init__(self, function: Callable[..., Any], ignore: frozenset[str]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._function = function
        self._signature = _signature(function)
        if unknown := ignore - set(self._signature.parameters):
            raise TypeError(f"@once: {self._name} has no parameter {', '.join(sorted(unknown))}")
        self._ignore = ignore
        self._values = ReturnValues(self._signature.return_annotation)
        self._wrapper: Any = None

    @staticmethod
    def effects() -> Effects | None:
        """Those of the attempt whose code is running. Got here: a wrapper without globals can be sent to a worker process."""
        return EFFECTS.get()

    def wrapped_by(self, wrapper: Any) -> Any:
        """The wrapper, with annotations that can be read without the function's own module, as AG2 does."""
        self._wrapper = wrapper
        wrapper.__signature__ = self._signature
        annotations = {name: each.annotation for name, each in self._signature.parameters.items()}
        annotations["return"] = self._signature.return_annotation
        wrapper.__annotations__ = {
            name: each for name, each in annotations.items() if each is not inspect.Parameter.empty
        }
        return wrapper

    def begin(self, effects: Effects, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Receipt | None]:
        """The call's key, and the receipt where it has been made."""
        bound = self._signature.bind(*args, **kwargs)  # a TypeError is what the function itself would have said
        bound.apply_defaults()
        arguments = {name: value for name, value in bound.arguments.items() if name not in self._ignore}
        if self._is_method(args):
            arguments.pop(next(iter(self._signature.parameters)), None)
        try:
            self._values.check()
            digest = arguments_digest(arguments)
        except ValueError as problem:
            effects.fail(ConfigurationError(f"@once: the tool {self._name} cannot be called: {problem}"))
        key = effects.numbered(f"{self._name} {digest}")
        try:
            return key, effects.begin(key)
        except UncertainEffectError as error:
            effects.fail(error)

    def finish(self, effects: Effects, key: str, value: Any) -> Any:
        """Store what was returned; what is returned in its place, the same as in every later attempt."""
        try:
            text = self._values.dumped(value)
        except ValueError as problem:
            effects.finish(key, self._values.refused(str(problem)))
            effects.fail(self._refusal(problem))
        effects.finish(key, text)
        return self._values.loaded(text)

    def stored(self, effects: Effects, receipt: Receipt) -> Any:
        """What was returned when the effect happened."""
        try:
            return self._values.loaded(receipt.value)
        except ValueError as problem:
            effects.fail(self._refusal(problem))

    def _refusal(self, problem: ValueError) -> ConfigurationError:
        return ConfigurationError(
            f"@once: the tool {self._name} was called, its effect is written down and is not repeated, but {problem}"
        )

    def _is_method(self, args: tuple[Any, ...]) -> bool:
        """Whether the first argument is the object, or the class, that the function was got from."""
        if not args:
            return False
        owner = args[0] if isinstance(args[0], type) else type(args[0])
        name = self._function.__name__
        found = (vars(each).get(name) for each in owner.__mro__)
        return any(each is self._wrapper or getattr(each, "__func__", None) is self._wrapper for each in found)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, annotations that are text resolved where they can be."""
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:  # a name that is known only later, or to type checkers alone
        return inspect.signature(function)

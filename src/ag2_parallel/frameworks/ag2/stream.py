"""A conversation's stream that subscribes plain coroutine functions at once.

For each subscription AG2 builds a pydantic model of the function's arguments, half a dozen for every `ask`,
which takes longer than all else that an `ask` does. Of a coroutine function that takes an event, and perhaps
the context, such a model says nothing that its signature does not: it is called as it is. Every other
function is subscribed as AG2 does it.

To be imported once `ag2` is.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Union, get_args, get_origin
from uuid import uuid4

from ag2 import MemoryStream
from ag2.annotations import ContextField
from ag2.events import BaseEvent

if TYPE_CHECKING:
    from collections.abc import Callable


class FastStream(MemoryStream):  # type: ignore[misc] # ag2 is not looked into
    """A `MemoryStream` in all that is seen of it; subclasses may override what they like."""

    __slots__ = ()

    def subscribe(
        self,
        func: Callable[..., Any] | None = None,
        *,
        interrupt: bool = False,
        sync_to_thread: bool = True,
        condition: Any = None,
    ) -> Any:
        """Subscribe `func`, or give a decorator that does; see `ag2.MemoryStream.subscribe`."""
        form = None if func is None else _form(func)
        if form is None:
            return super().subscribe(func, interrupt=interrupt, sync_to_thread=sync_to_thread, condition=condition)
        # What the parent keeps of a subscription, with a plain call in place of the model.
        number = uuid4()
        subscriptions = self._interrupters if interrupt else self._subscribers
        subscriptions[number] = (condition, _PlainCall(func, form))
        return number


class _Form(NamedTuple):
    """How a coroutine function wants to be called.

    Attributes:
        event: The event classes that it takes.
        context: Whether it takes the context too.
    """

    event: Any
    context: bool


class _PlainCall:
    """Stands where a stream has the model of a function's arguments."""

    __slots__ = ("_form", "_function")

    def __init__(self, function: Any, form: _Form) -> None:
        self._function = function
        self._form = form

    async def asolve(self, event: Any, **given: Any) -> Any:
        """Call the function; an event that it does not take goes AG2's way, and fails there."""
        if not isinstance(event, self._form.event):
            from ag2.utils import build_model

            return await build_model(self._function, serialize_result=False).asolve(event, **given)
        if self._form.context:
            return await self._function(event, given["__ctx__"])
        return await self._function(event)


def _form(function: Any) -> _Form | None:
    """How to call it plainly, or None where that cannot be told."""
    bound = isinstance(function, MethodType)
    plain = function.__func__ if bound else function
    if not isinstance(plain, FunctionType) or not inspect.iscoroutinefunction(plain):
        return None
    if plain.__defaults__ or plain.__kwdefaults__ or hasattr(plain, "__wrapped__"):
        return None
    names = tuple(sorted(plain.__annotations__.items(), key=lambda item: item[0]))
    try:
        return _form_of(plain.__code__, names, _Names(plain.__globals__), bound)
    except TypeError:  # an annotation that cannot be a key
        return None


class _Names(dict[str, Any]):
    """A module's names, as a part of a key that is the same for all functions of the module's."""

    def __init__(self, module: dict[str, Any]) -> None:
        super().__init__()
        self.module = module

    def __hash__(self) -> int:  # type: ignore[override] # it is no plain dict
        return id(self.module)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Names) and other.module is self.module


@lru_cache(maxsize=1024)
def _form_of(code: CodeType, annotations: tuple[tuple[str, Any], ...], names: _Names, bound: bool) -> _Form | None:  # noqa: FBT001 - a part of the key
    """Cached: an agent's own subscriptions are the same for every `ask`."""
    arguments = code.co_varnames[: code.co_argcount][1 if bound else 0 :]
    more = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if more or len(arguments) not in {1, 2}:
        return None
    said = {name: _meant(annotation, names.module) for name, annotation in annotations}
    event = said.get(arguments[0], BaseEvent)
    event = BaseEvent if event is Any else event
    if not _is_event(event):
        return None
    if len(arguments) == 2 and not any(
        isinstance(mark, ContextField) for mark in getattr(said.get(arguments[1]), "__metadata__", ())
    ):
        return None
    return _Form(event, len(arguments) == 2)


def _meant(annotation: Any, names: dict[str, Any]) -> Any:
    """What an annotation stands for; a text that is no name of the module stands for nothing known."""
    return names.get(annotation) if isinstance(annotation, str) else annotation


def _is_event(annotation: Any) -> bool:
    if get_origin(annotation) in {Union, UnionType}:
        return all(map(_is_event, get_args(annotation)))
    return isinstance(annotation, type) and issubclass(annotation, BaseEvent)

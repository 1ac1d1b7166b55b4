"""What users made, as bytes: tasks on their way to a child, drafts and answers on their way back.

Functions and classes that cannot be imported by name, such as those of `__main__` and of notebooks, cross by
value (cloudpickle). Packing and unpacking run users' code, so neither happens on a loop.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import pickle
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ag2_parallel.errors import NotSerializableError, TaskStopped
from ag2_parallel.results import plain
from ag2_parallel.tasks import TASK_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ag2_parallel.ports import Answer
    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.spans import Span
    from ag2_parallel.tasks import ParallelTask

LARGEST: Final = 1_000_000_000
"""Bytes of a task on its way, and of an answer: little less than may be in a frame."""

_DEEPEST: Final = 6
"""Steps that are gone down to find what cannot be sent."""


class NewSpans(NamedTuple):
    """What is new of an attempt's trace.

    Attributes:
        ended: Spans that have ended; all there are if `anew`.
        anew: Whether those sent before do not count any more.
        unfinished: Those that have not ended.
        dropped: How many are not kept.
    """

    ended: tuple[Span, ...] = ()
    anew: bool = False
    unfinished: tuple[Span, ...] = ()
    dropped: int = 0


class Left(NamedTuple):
    """What is new of an attempt's draft."""

    chat_history: list[dict[str, Any]]
    console: list[str]
    context: Mapping[str, Any]
    last_speaker: str | None
    summary: str | None
    agent: str | None
    tool: str | None
    spans: NewSpans = NewSpans()


class Unreadable(NamedTuple):
    """Stands for an answer that cannot be read in the caller's process."""

    why: str


def dumped(value: Any) -> bytes:
    """`value` as bytes for a worker; raises whatever stands against it."""
    from ag2_parallel.backends.home_classes import sent  # with the first task that crosses

    with _only_errors():
        return sent(value)


def _dumped_back(value: Any) -> bytes:
    """In a worker: `value` as bytes for the process above; raises whatever stands against it."""
    from ag2_parallel.backends.home_classes import sent_back

    with _only_errors():
        return sent_back(value)


@contextlib.contextmanager
def _only_errors() -> Iterator[None]:
    """What users' code raises is an obstacle, also where it is `SystemExit`; signals to this thread are none."""
    try:
        yield
    except (Exception, KeyboardInterrupt, TaskStopped):
        raise
    except BaseException as error:
        raise pickle.PicklingError(in_words(error)) from error


def in_words(error: BaseException) -> str:
    """An error of users' code, which may have no words for itself."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def loaded(data: bytes) -> Any:
    """The value again; runs code of whoever made it."""
    return pickle.loads(data)  # noqa: S301 - made by this package, in a process of the same user


def packed_task(task: ParallelTask, upstream: Mapping[str, ParallelTaskResult]) -> bytes:
    """A task and the results it depends on.

    Raises:
        NotSerializableError: If something in them cannot be sent; names it.
    """
    try:
        made = dumped((task, dict(upstream)))
    except Exception as error:
        text = problem(task) or (
            f'task "{task.name}": a result it depends on cannot be sent to another process: {in_words(error)}'
        )
        raise NotSerializableError(text) from error
    return _within(made, f'task "{task.name}": with all that belongs to it, it')


def _within(made: bytes, what: str, largest: int = LARGEST) -> bytes:
    if len(made) > largest:
        size, most = (f"{each / 1e6:,.0f} MB" for each in (len(made), largest))
        raise NotSerializableError(
            f"{what} has {size}, and {most} are the most that goes from one process to another; write it to a file"
        )
    return made


def problem(task: ParallelTask, *, live: bool = False) -> str | None:
    """What of a task cannot be sent to another process, in words; None: nothing.

    Args:
        task: The task.
        live: Whether its agent is an agent or a team and no factory; these are never sent.
    """
    if not live:
        with contextlib.suppress(Exception):  # told below, field by field
            dumped(task)
            return None
    for name in TASK_FIELDS:
        value = getattr(task, name)
        path, error = _culprit(value, name)
        if live and name == "agent":
            return (
                f'task "{task.name}": agent is a live {type(value).__name__}, and live agents do not go to another process'
                f"{f' (cannot be sent: {path}, {error})' if error else ''}; pass a factory (a function that returns a fresh one) "
                "or agent_config"
            )
        if error:
            return (
                f'task "{task.name}": {name} cannot be sent to another process: {path} is the obstacle ({error}); '
                "make it inside the function, or take it from ctx.resources"
            )
    return f'task "{task.name}": it cannot be sent to another process'


def option_problem(name: str, value: Any) -> str | None:
    """What of an option cannot be sent to another process, in words; None: nothing."""
    path, error = _culprit(value, name)
    return f"option {name}: it cannot be sent to another process: {path} is the obstacle ({error})" if error else None


def packed_left(left: Left) -> bytes:
    """What an attempt left, as it is or, where that cannot be sent, as plain data."""
    try:
        return _dumped_back(tuple(left))
    except Exception:
        return _dumped_back((*(_plain(value) for value in left[:-1]), left.spans))


def _plain(value: Any) -> Any:
    """The value as plain data, or empty where it cannot even be shown."""
    try:
        return plain(value)
    except Exception:
        return {} if isinstance(value, Mapping) else [] if isinstance(value, list) else None


def unpacked_left(data: bytes) -> Left:
    """What an attempt left."""
    return Left(*loaded(data))


def packed_answer(task: str, answer: Answer, largest: int = LARGEST) -> bytes:
    """An attempt's answer.

    Raises:
        NotSerializableError: If its output cannot be sent; says what it is.
    """
    try:
        made = _dumped_back(answer)
    except Exception as error:
        path, why = _culprit(answer.output, "output")
        text = (
            f'task "{task}": its output, of type {type(answer.output).__name__}, cannot be sent back from the worker process: '
            f"{path} is the obstacle ({why or in_words(error)}); return plain data"
        )
        raise NotSerializableError(text) from error
    return _within(made, f'task "{task}": its output', largest)


def _culprit(value: Any, path: str, depth: int = 0) -> tuple[str, str]:
    """Where the obstacle lies and what it says; an empty text where there is none."""
    try:
        dumped(value)
    except Exception as error:
        if depth < _DEEPEST:
            with contextlib.suppress(Exception):  # it does not show what it is made of
                for name, part in _parts(value):
                    found, text = _culprit(part, f"{path}{name}", depth + 1)
                    if text:
                        return found, text
        return path, in_words(error)
    return path, ""


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value is made of, with how to get there."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{place}]", item) for place, item in enumerate(value))
    elif isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif inspect.ismethod(value):
        yield ".__self__", value.__self__
    elif inspect.isfunction(value):
        used = inspect.getclosurevars(value)
        yield from ((f" > {name}", item) for name, item in {**used.nonlocals, **used.globals}.items())
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{each.name}", getattr(value, each.name)) for each in fields(value))
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not inspect.ismodule(value):
        yield from ((f".{name}", item) for name, item in list(vars(value).items()))

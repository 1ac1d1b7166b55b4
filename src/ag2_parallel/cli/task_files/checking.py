"""From a file's data to its model, with errors that name the place and the nearest right word."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from ag2_parallel.cli.task_files.document import existing
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ag2_parallel.cli.task_files.document import Document

M = TypeVar("M", bound=BaseModel)

_OF_CLASSIC = {"system_message": "prompt", "llm_config": "config", "output_type": "response_schema"}
"""What Classic calls a key of an agent of AG2 1.x."""

_OTHER_WORDS = {"id": "name", "message": "prompt", "input": "prompt", "workers": "max_workers", "tools_": "tools",
                "functions": "tools", "max_round": "max_rounds", "model": "llm_config"}  # fmt: skip


def checked(model: type[M], document: Document, inside: Sequence[str | int] = (), data: Any = None) -> M:
    """The model of a document, or of `data`, a part of it at `inside`.

    Raises:
        ConfigurationError: With every problem, each with file, line, column and the path inside.
    """
    value = document.data if data is None else data
    if not isinstance(value, dict):
        raise document.error(f"must be a mapping, and is {_kind(value)}", inside)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        told: dict[str, list[str]] = {}
        found = error.errors(include_input=False, include_url=False, include_context=True)
        paths = [tuple(_steps(value, each)) for each in found]
        for each, steps in zip(found, paths, strict=True):
            if not any(_is_inside(other, steps) for other in paths):  # of what may be one thing or another, the nearest
                told.setdefault(document.where([*inside, *steps]), []).append(_worded(model, each))
        raise ConfigurationError(
            [f"{where}: {' or '.join(dict.fromkeys(texts))}" for where, texts in told.items()]
        ) from None


def _steps(data: Any, error: Any) -> list[str | int]:
    """The path of an error inside the file: what is there, and the key that is missing."""
    steps: list[str | int] = list(existing(data, error["loc"]))
    return [*steps, error["loc"][-1]] if error["type"] == "missing" else steps


def _is_inside(path: Sequence[str | int], outer: Sequence[str | int]) -> bool:
    return len(path) > len(outer) > 0 and list(path[: len(outer)]) == list(outer)


def _worded(model: type[BaseModel], error: Any) -> str:
    if error["type"] == "extra_forbidden":
        key = str(error["loc"][-1])
        known = sorted({name for each in _models_at(model, error["loc"][:-1]) for name in each.model_fields})
        if _OF_CLASSIC.get(key) in known and "response_schema" in known:
            return f"unknown key; did you mean {_OF_CLASSIC[key]!r}?"
        near = [_OTHER_WORDS[key]] if _OTHER_WORDS.get(key) in known else get_close_matches(key, known, n=1, cutoff=0.5)
        return f"unknown key; did you mean {near[0]!r}?" if near else f"unknown key; there are {', '.join(known)}"
    if error["type"] == "missing":
        return "is missing"
    return str(error["msg"][:1].lower() + error["msg"][1:])


def _models_at(model: type[BaseModel], steps: Sequence[str | int]) -> list[type[BaseModel]]:
    """The models that a path may lead to."""
    here = [model]
    for step in steps:
        lines = [each for each in here if "framework" in each.model_fields and step in _line_of(each)]
        if lines:  # one kind of agent or the other
            here = lines
            continue
        fields = [
            each.model_fields[step].annotation for each in here if isinstance(step, str) and step in each.model_fields
        ]
        here = [found for annotation in fields for found in _models_in(annotation)] or here
    return here


def _line_of(model: type[BaseModel]) -> tuple[Any, ...]:
    return get_args(model.model_fields["framework"].annotation)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _kind(value: Any) -> str:
    names = {"NoneType": "empty", "list": "a list", "str": "text", "Plain": "text"}
    return names.get(type(value).__name__, f"a {type(value).__name__}")

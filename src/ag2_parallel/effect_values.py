"""Arguments and values of effects as text that is the same in each life of a run."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ag2_parallel.redaction import cut

_SHOWN: Final = 60
_DEEPEST: Final = 100


def arguments_digest(arguments: Mapping[str, Any]) -> str:
    """Names a call by its arguments: 32 hexadecimal digits.

    Raises:
        ValueError: One of them is no plain data.
    """
    plain = {}
    for name, value in arguments.items():
        try:
            plain[name] = _plain(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"its argument {name}={_shown(value)} is no plain data, and could not be known again; pass text, numbers, "
                f'lists, mappings, dataclasses or pydantic models, or leave it out of account with @once(ignore=["{name}"])'
            ) from error
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _plain(value: Any, depth: int = 0) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if depth > _DEEPEST:
        raise ValueError("nested too deeply, or in a circle")
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping | set | frozenset):  # in no order, or in one that says nothing
        items = value.items() if isinstance(value, Mapping) else value
        return {"unordered": sorted((_plain(item, depth + 1) for item in items), key=json.dumps)}
    named = f"{type(value).__module__}.{type(value).__qualname__}"
    fields = None if isinstance(value, type) else _fields(value)
    return {named: _leaf(value) if fields is None else _plain(fields, depth + 1)}


def _fields(value: Any) -> Any:
    """The fields of a dataclass or a pydantic model; None for everything else."""
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return value.model_dump() if hasattr(value, "model_dump") else None


def _leaf(value: Any) -> Any:
    """Dates, paths, decimals, enums, bytes and their kind; raises what pydantic says of anything else."""
    from pydantic_core import to_jsonable_python

    if isinstance(value, Iterator):  # a generator or an open file: reading it would leave nothing for the tool
        raise TypeError("it can be read once")
    return to_jsonable_python(value, bytes_mode="base64")


class ReturnValues:
    """What a tool returns, as a receipt's text and back."""

    def __init__(self, annotation: Any) -> None:
        """`annotation` is the function's own, or `inspect.Signature.empty`."""
        unknown = annotation in {inspect.Signature.empty, Any} if _hashable(annotation) else False
        self._annotation = None if unknown or isinstance(annotation, str) else (annotation,)

    def __getstate__(self) -> dict[str, Any]:
        """What goes to a worker process: what was made of the annotation is made again there."""
        return {"_annotation": self._annotation}

    @functools.cached_property
    def _adapter(self) -> Any:
        """What pydantic makes of the annotation; None where there is none, or none that it can read."""
        from pydantic import TypeAdapter

        return None if self._annotation is None else TypeAdapter(self._annotation[0])

    def check(self) -> None:
        """Refuse what can be known to be impossible to store.

        Raises:
            ValueError: The annotation says that the values cannot be.
        """
        from pydantic.errors import PydanticUserError

        try:
            self._adapter  # noqa: B018 - made here
        except PydanticUserError as error:
            raise ValueError(
                f"what it returns, {inspect.formatannotation((self._annotation or (Any,))[0])}, cannot be stored; return "
                "text, plain data, a dataclass or a pydantic model"
            ) from error

    def dumped(self, value: Any) -> str:
        """The receipt's text.

        Raises:
            ValueError: The value cannot be stored.
        """
        typed = self._typed(value)
        if typed is not None:
            return typed
        try:
            return json.dumps({"plain": value})
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"it returned {_shown(value)}, which cannot be stored; return text or plain data, or annotate its return "
                "type with a dataclass or a pydantic model that comes back from JSON as it was"
            ) from error

    def refused(self, problem: str) -> str:
        """The receipt's text for an effect that happened and whose value cannot be stored."""
        return json.dumps({"refused": problem})

    def loaded(self, text: str) -> Any:
        """The value again.

        Raises:
            ValueError: It could not be stored, or is none of the type that the tool returns now.
        """
        receipt = json.loads(text)
        if not isinstance(receipt, dict):
            return receipt  # an effect that is taken to have happened: nobody knows its value
        if "refused" in receipt:
            raise ValueError(receipt["refused"])
        if "typed" in receipt and self._adapter is not None:
            return self._adapter.validate_json(json.dumps(receipt["typed"]))
        return receipt.get("typed", receipt.get("plain"))

    def _typed(self, value: Any) -> str | None:
        """The text by the annotation; None where the value would not come back the same."""
        if self._adapter is None:
            return None
        try:
            body = self._adapter.dump_json(value, warnings="error")
            back = self._adapter.validate_json(body)
            same = type(back) is type(value) and bool(back == value)
        except Exception:  # tools do not always return what they say
            return None
        return f'{{"typed": {body.decode()}}}' if same else None


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return cut(text, _SHOWN)

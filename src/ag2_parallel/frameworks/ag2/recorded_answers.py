"""Answers of AG2's model clients as bytes, and back: so that a call of a client that sends by itself can be recorded.

A client publishes events while it works (chunks, reasoning, its message), and returns a response; both are the answer.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Final

from ag2_parallel.async_ports import ForeignRecord

_NAMES_OF_CLASSES: Final = ("__event__", "__dataclass__", "__pydantic__", "__enum__")
"""Keys under which AG2 writes down what to make of a value."""

_TRUSTED: Final = "ag2."
"""Where classes may come from: what is loaded is named by a file."""

_OF_ONE_RUN: Final = frozenset({"created_at"})
"""What differs from run to run, and is no part of what is asked."""


@dataclass(slots=True)
class Answer:
    """What came of a client's call.

    Attributes:
        response: What it returned.
        published: The events that it published.
        live: Whether they were published now, and not in the life that was recorded.
    """

    response: Any
    published: list[Any] = field(default_factory=list)
    live: bool = True


def foreign_record(messages: Iterable[Any], prompt: Iterable[str], options: Mapping[str, Any]) -> ForeignRecord[Answer]:
    """How the answer to a call is recorded."""
    asked = {
        "prompt": list(prompt),
        "messages": [{"event": type(each).__name__, **_asked(each.to_dict())} for each in messages],
        "tools": [_asked(_plain(tool)) for tool in options.get("tools") or ()],
        "schema": getattr(options.get("response_schema"), "json_schema", None),
    }
    return ForeignRecord(asked, dumped, loaded)


def dumped(answer: Answer) -> bytes | None:
    """An answer of AG2's own classes; None for every other, and for one that would not come back the same."""
    try:
        record = {"response": _named(answer.response), "published": [_named(each) for each in answer.published]}
        body = json.dumps(record).encode()
        again = loaded(body)
    except Exception:  # it holds what JSON has not, or a class of the user's
        return None
    return body if (again.response, again.published) == (answer.response, answer.published) else None


def loaded(body: bytes) -> Answer:
    """The answer again.

    Raises:
        ValueError: It is of classes that are none of AG2's.
    """
    record = json.loads(body)
    _check_names(record)
    return Answer(_made(record["response"]), [_made(each) for each in record["published"]], live=False)


def _named(event: Any) -> dict[str, Any]:
    return {"__event__": f"{type(event).__module__}.{type(event).__qualname__}", **event.to_dict()}


def _made(record: dict[str, Any]) -> Any:
    module, _, name = record["__event__"].rpartition(".")
    data = {key: value for key, value in record.items() if key != "__event__"}
    return getattr(importlib.import_module(module), name).from_dict(data)


def _check_names(value: Any) -> None:
    if isinstance(value, Mapping):
        for name in _NAMES_OF_CLASSES:
            if name in value and not str(value[name]).startswith(_TRUSTED):
                raise ValueError(f"a recorded answer is of a class that is none of AG2's: {value[name]}")
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _check_names(each)


def _asked(value: Any) -> Any:
    """Plain data without what differs from run to run."""
    if isinstance(value, Mapping):
        return {name: _asked(item) for name, item in value.items() if name not in _OF_ONE_RUN}
    return [_asked(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """A tool's schema as plain data."""
    if is_dataclass(value) and not isinstance(value, type):
        names = list(value.__dataclass_fields__)
        return {"kind": type(value).__name__} | {name: _plain(getattr(value, name)) for name in names}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value

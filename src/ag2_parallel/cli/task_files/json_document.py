"""JSON with the places of its parts, found when they are asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.task_files.document import Document, Inside, Place
from ag2_parallel.data.json_rows import DoubledKeyError, unique_keys
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

_BLANK: Final = " \t\r\n"
_decoder = json.JSONDecoder()


def json_document(path: Path, text: str, first_line: int = 1) -> Document:
    """Read a JSON text; `first_line` is its line in the file.

    Raises:
        ConfigurationError: With line and column, for what is no JSON, or a doubled key.
    """

    def place(offset: int) -> Place:
        line_start = text.rfind("\n", 0, offset) + 1
        return Place(first_line + text.count("\n", 0, offset), offset - line_start + 1)

    def find(inside: Inside) -> Place:
        return place(_offset(text, inside))

    try:
        data = json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        at = place(error.pos)
        raise ConfigurationError(f"{path}:{at.line}:{at.column}: no valid JSON: {error.msg}") from None
    except DoubledKeyError as error:
        at = place(_doubled(text))
        raise ConfigurationError(f"{path}:{at.line}:{at.column}: {error}") from None
    except RecursionError as error:
        raise ConfigurationError(f"{path}:{first_line}: no usable JSON: {error}") from None
    return Document(path, data, find)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _items(text: str, at: int) -> Any:
    """The items of the object or list at `at`: key or position, where it begins, where its value begins."""
    is_object, position = text[at] == "{", 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        start = at
        key: str | int = position
        if is_object:
            key, at = _decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        yield key, start, at
        at = _skip(text, _decoder.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at
        position += 1


def _offset(text: str, inside: Inside) -> int:
    """Where a part begins: an object's item at its key."""
    at = found = _skip(text, 0)
    for step in inside:
        if text[at] not in "{[":
            break
        start, at = next(((start, at) for key, start, at in _items(text, at) if key == step), (found, at))
        found = start
    return found


def _doubled(text: str) -> int:
    """Where the first key stands that is there for the second time."""
    waiting = [_skip(text, 0)]
    while waiting:
        at = waiting.pop()
        if text[at] not in "{[":
            continue
        seen = set()
        for key, start, value in _items(text, at):
            if key in seen:
                return int(start)
            seen.add(key)
            waiting.append(value)
    return 0

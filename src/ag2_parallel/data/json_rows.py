"""Rows of JSON: one object a line, or one list of objects, neither held in memory whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.data.row import Row
from ag2_parallel.data.text import as_text, undecoded
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    import io
    from typing import TextIO

_CHUNK: Final = 1 << 16
_BLANK: Final = " \t\r\n"


class DoubledKeyError(ValueError):
    """Raised where a JSON object has a key twice."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's items; a key that is there twice is an error and not the last one's value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        doubled = next(key for key in keys if keys.count(key) > 1)
        raise DoubledKeyError(f"the key {doubled!r} is there twice")
    return found


_decoder = json.JSONDecoder(object_pairs_hook=unique_keys)


def json_line_rows(binary: io.BufferedReader, encoding: str | None = None) -> Iterator[Row]:
    """Read a file with one JSON object a line; blank lines are passed over."""
    number = 0
    with as_text(binary, encoding) as lines:
        for line, text in enumerate(lines, start=1):
            if text.strip():
                number += 1
                yield _line_row(number, line, text)


def json_line_count(binary: io.BufferedReader, encoding: str | None = None) -> int:
    """How many rows `json_line_rows` gives, those with a problem included."""
    with as_text(binary, encoding) as lines:
        return sum(1 for text in lines if text.strip())


def _line_row(number: int, line: int, text: str) -> Row:
    if (bad := undecoded(text)) is not None:
        return Row(number, line=line, problem=bad)
    try:
        value = json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        return Row(number, line=line, problem=f"is no valid JSON: {error.msg} at column {error.pos + 1}")
    except (DoubledKeyError, RecursionError) as error:
        return Row(number, line=line, problem=f"is no usable JSON: {error}")
    if not isinstance(value, Mapping):
        return Row(number, line=line, problem=f"is a {type(value).__name__} and no JSON object")
    return Row(number, value, line)


def json_list_rows(binary: io.BufferedReader, name: str, encoding: str | None = None) -> Iterator[Row]:
    """Read a file with one JSON list of objects, object by object.

    Raises:
        ConfigurationError: If it is no list, or its text is no JSON from some place on.
    """
    with as_text(binary, encoding) as text:
        for number, (line, value) in enumerate(_ListItems(text, name), start=1):
            if isinstance(value, Mapping):
                yield Row(number, value, line)
            else:
                yield Row(number, line=line, problem=f"is a {type(value).__name__} and no JSON object")


class _ListItems:
    """Decodes the items of a list from a window of the text that grows until the next item is whole."""

    def __init__(self, text: TextIO, name: str) -> None:
        self._text = text
        self._name = name
        self._window = ""
        self._at = 0
        self._line = 1
        self._ended = False

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        if self._next_character() != "[":
            raise ConfigurationError(f"{self._name} is no JSON list of objects")
        self._at += 1
        if self._next_character() == "]":
            return
        while True:
            self._next_character()
            yield self._line, self._item()
            mark = self._next_character()
            self._at += 1
            if mark == "]":
                return
            if mark != ",":
                raise self._broken("a comma or the end of the list is missing")

    def _next_character(self) -> str:
        """Skip blanks; the character that follows, or nothing at the end."""
        while True:
            while self._at < len(self._window) and self._window[self._at] in _BLANK:
                self._line += self._window[self._at] == "\n"
                self._at += 1
            if self._at < len(self._window):
                return self._window[self._at]
            if not self._read(_CHUNK):
                return ""

    def _item(self) -> Any:
        size = _CHUNK
        while True:
            try:
                value, end = _decoder.raw_decode(self._window, self._at)
            except json.JSONDecodeError as error:
                if self._read(size):  # doubling: an item of any size is decoded a few times only
                    size *= 2
                    continue
                self._line += self._window.count("\n", self._at, error.pos)
                raise self._broken(error.msg) from error
            except (DoubledKeyError, RecursionError) as error:
                raise self._broken(str(error)) from error
            if end == len(self._window) and not isinstance(value, Mapping) and self._read(size):
                continue  # a number may go on
            if (bad := undecoded(self._window[self._at : end])) is not None:
                raise self._broken(bad)
            self._line += self._window.count("\n", self._at, end)
            self._at = end
            return value

    def _read(self, size: int) -> bool:
        more = "" if self._ended else self._text.read(size)
        self._ended = not more
        self._window = self._window[self._at :] + more
        self._at = 0
        return bool(more)

    def _broken(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"{self._name}, line {self._line}: no valid JSON: {why}")

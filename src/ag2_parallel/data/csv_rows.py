"""Rows of a CSV file as spreadsheets and programs write it: any separator, cells of any length."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.data.row import Row
from ag2_parallel.data.text import as_text, undecoded
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

_SEPARATORS: Final = (",", ";", "\t", "|")
_QUOTED: Final = re.compile(r'"[^"]*"')
_NAMED_SEPARATOR: Final = re.compile(r"sep=(.)\r?\n?$")
"""The first line by which a spreadsheet says how a file is separated."""


def csv_rows(binary: io.BufferedReader, name: str, encoding: str | None = None) -> Iterator[Row]:
    """Read a CSV file with a line of column names.

    Args:
        binary: The file, at its start.
        name: Of the file, for messages.
        encoding: None: what the byte order mark says, else UTF-8.

    Raises:
        ConfigurationError: If it has no columns, or two of one name.
    """
    with as_text(binary, encoding) as text:
        yield from _rows(iter(text), name)


def csv_row_count(binary: io.BufferedReader, name: str, encoding: str | None = None) -> int:
    """How many rows `csv_rows` gives, those with a problem included.

    Raises:
        ConfigurationError: As `csv_rows`.
    """
    with as_text(binary, encoding) as text:
        reader, _, _ = _begun(iter(text), name)
        count = 0
        while True:
            try:
                count += any(next(reader))
            except StopIteration:
                return count
            except _csv().Error:
                count += 1


def _rows(lines: Iterator[str], name: str) -> Iterator[Row]:
    reader, columns, offset = _begun(lines, name)
    number = 0
    while True:
        line = reader.line_num + 1 + offset
        try:
            cells = next(reader)
        except StopIteration:
            return
        except _csv().Error as error:
            number += 1
            yield Row(number, line=line, problem=f"is no sound CSV: {_told(error)}")
            continue
        if any(cells):
            number += 1
            yield _row(number, line, columns, cells)


def _begun(lines: Iterator[str], name: str) -> tuple[Any, list[str], int]:
    """The rows behind the line of column names, the columns, and how many lines the reader does not count."""
    first = next((line for line in lines if line.strip()), "")
    named = _NAMED_SEPARATOR.match(first)
    separator = named[1] if named else _separator(first)
    reader = _reader(lines if named else itertools.chain([first], lines), separator)
    return reader, _columns(reader, name), 1 if named else 0


@cache
def _csv() -> Any:
    """An instance of the module behind `csv` that is ours alone.

    The module's limit of 131,072 characters a cell can only be changed for the whole process, and the program that
    calls us may count on it. A second instance of the module has a limit of its own.
    """
    spec = importlib.util.find_spec("_csv")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    return module


def _reader(lines: Iterator[str], separator: str) -> Any:
    return _csv().reader(lines, delimiter=separator, strict=True)


def _separator(line: str) -> str:
    """The separator that stands most often in the line of column names."""
    bare = _QUOTED.sub("", line)
    return max(_SEPARATORS, key=bare.count)


def _columns(reader: Any, name: str) -> list[str]:
    try:
        columns = [cell.strip() for cell in next(reader, [])]
    except _csv().Error as error:
        raise ConfigurationError(f"{name}, line 1: the column names are no sound CSV: {_told(error)}") from error
    if not any(columns):
        raise ConfigurationError(f"{name} is empty: it has no line of column names")
    named = [column for column in columns if column]
    doubled = sorted({column for column in named if named.count(column) > 1})
    if doubled:
        raise ConfigurationError(f"{name}, line 1: two columns are called {', '.join(map(repr, doubled))}; rename one")
    if (bad := undecoded("".join(columns))) is not None:
        raise ConfigurationError(f"{name}, line 1, column names: {bad}")
    return columns


def _row(number: int, line: int, columns: list[str], cells: list[str]) -> Row:
    surplus = cells[len(columns) :]
    if any(surplus) or len(cells) < len(columns):
        told = f"has {len(cells)} cells, and there are {len(columns)} columns: {', '.join(columns)}"
        return Row(number, line=line, problem=told)
    values = {column: cell for column, cell in zip(columns, cells, strict=False) if column}
    for column, cell in values.items():
        if (bad := undecoded(cell)) is not None:
            return Row(number, values, line, f"column {column!r}: {bad}")
    return Row(number, values, line)


def _told(error: Exception) -> str:
    text = str(error)
    if text == "unexpected end of data":
        return "the file ends inside a quoted cell"
    if "expected after" in text:
        return f"{text}; a quote inside a quoted cell is written twice"
    return text

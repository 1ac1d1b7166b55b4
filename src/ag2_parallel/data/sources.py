"""Which reader a data set needs."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.data.csv_rows import csv_row_count, csv_rows
from ag2_parallel.data.folder_rows import folder_rows
from ag2_parallel.data.frame_rows import MemoryRows
from ag2_parallel.data.json_rows import json_line_count, json_line_rows, json_list_rows
from ag2_parallel.data.parquet_rows import parquet_rows
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

    from ag2_parallel.data.row import Row, RowSource

_FORMS: Final = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip

STANDARD_INPUT: Final = "-"

_COUNTED_UP_TO: Final = 16 * 2**20
"""Bytes of a file whose rows are counted: CSV is read at some 50 MB a second, so a run starts at most a third of a second
later for it. A larger file is read for its tasks alone."""


def row_source(rows: Any, encoding: str | None = None, standard_input: io.BufferedReader | None = None) -> RowSource:
    """The rows of whatever a user may call a data set.

    Args:
        rows: A path of a CSV, JSONL, JSON or Parquet file or of a folder of text files, "-" for standard input, an
            iterable of mappings, or a frame.
        encoding: Of the files; None: what a byte order mark says, else UTF-8.
        standard_input: What "-" stands for; None: the process's.

    Raises:
        ConfigurationError: If there is no such file, or its kind is not known.
    """
    if isinstance(rows, str) and rows == STANDARD_INPUT:
        return _StandardInput(encoding, standard_input)
    if not isinstance(rows, str | os.PathLike):
        return MemoryRows(rows)
    path = Path(rows)
    if not path.exists():
        raise ConfigurationError(f"there is no data file {path}")
    if not path.is_dir() and path.suffix.lower() not in _FORMS:
        raise ConfigurationError(f"{path}: rows are read from {', '.join(_FORMS)} files, folders of text files, and -")
    return _FileRows(path, encoding)


class _FileRows:
    """The rows of a file or a folder, opened anew for every reading."""

    repeatable = True

    def __init__(self, path: Path, encoding: str | None) -> None:
        self.name = str(path)
        self._path = path
        self._encoding = encoding

    def __iter__(self) -> Iterator[Row]:
        if self._path.is_dir():
            yield from folder_rows(self._path, self._encoding)
            return
        form = _FORMS[self._path.suffix.lower()]
        if form == "parquet":
            yield from parquet_rows(self._path)
            return
        try:
            binary = self._path.open("rb")
        except OSError as error:
            raise ConfigurationError(f"{self.name} cannot be read: {error.strerror}") from error
        with binary:
            yield from _of_text(binary, form, self.name, self._encoding)

    def count(self) -> int | None:
        """Of a CSV file or JSON lines: what a second reading of a file that is not large says."""
        form = _FORMS.get(self._path.suffix.lower())
        try:
            status = self._path.stat()
            if form not in {"csv", "jsonl"} or not stat.S_ISREG(status.st_mode) or status.st_size > _COUNTED_UP_TO:
                return None
            with self._path.open("rb") as binary:
                if form == "csv":
                    return csv_row_count(binary, self.name, self._encoding)
                return json_line_count(binary, self._encoding)
        except (OSError, UnicodeError, LookupError, ConfigurationError):
            return None  # whoever reads the rows is told


class _StandardInput:
    """The rows of a pipe; its first character tells JSON lines and a JSON list from CSV."""

    name = "standard input"
    repeatable = False

    def __init__(self, encoding: str | None, stream: io.BufferedReader | None) -> None:
        self._encoding = encoding
        self._stream = stream

    def __iter__(self) -> Iterator[Row]:
        binary = self._stream or os.fdopen(
            os.dup(sys.stdin.fileno()), "rb"
        )  # a copy: what we close stays open for others
        start = binary.peek(64)[:64].decode("utf-8-sig", "replace").lstrip()[:1]
        form = {"{": "jsonl", "[": "json"}.get(start, "csv")
        yield from _of_text(binary, form, self.name, self._encoding)

    def count(self) -> int | None:
        """A pipe is read once."""
        return None


def _of_text(binary: io.BufferedReader, form: str, name: str, encoding: str | None) -> Iterator[Row]:
    try:
        if form == "csv":
            yield from csv_rows(binary, name, encoding)
        elif form == "jsonl":
            yield from json_line_rows(binary, encoding)
        else:
            yield from json_list_rows(binary, name, encoding)
    except UnicodeError as error:
        raise ConfigurationError(
            f"{name}: its text is not {encoding or 'in the encoding it begins with'}: {error}"
        ) from error
    except LookupError as error:
        raise ConfigurationError(f"{name}: {error}") from error

"""Rows of plain data as JSON, JSON lines, CSV or Parquet, on standard output or in a file for its owner alone."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from contextlib import contextmanager
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, Final

from ag2_parallel.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_AT_ONCE: Final = 500
"""Rows in memory at a time."""

_USAGE: Final = ("prompt_tokens", "completion_tokens", "total_tokens", "calls", "cost")
_ERROR: Final = ("type", "kind", "message")
_WHOLE_NUMBERS: Final = frozenset(
    {"schema", "index", "attempts", "replayed_calls", "life", "attempt", "status_code", *_USAGE}
)
_NUMBERS: Final = frozenset({"queued", "duration", "waited", "cost"})


def write_rows(rows: Iterable[dict[str, Any]], form: str, out: Path | None) -> None:
    """Write rows down, as they come.

    Args:
        rows: Plain data.
        form: "json" (one list), "jsonl", "csv" or "parquet".
        out: A file, replaced as a whole once everything is written; None: standard output.

    Raises:
        ConfigurationError: If Parquet is to go to a terminal, or the file cannot be written.
        MissingExtraError: If there is no pyarrow, which Parquet needs.
    """
    if form == "parquet" and out is None and sys.stdout.isatty():
        raise ConfigurationError("parquet is not for a terminal: give --out FILE")
    with _opened(out) as file:
        if form == "parquet":
            _parquet(rows, file)
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        try:
            {"json": _json, "jsonl": _jsonl, "csv": _csv}[form](rows, text)
        finally:
            text.detach()


def _json(rows: Iterable[dict[str, Any]], file: IO[str]) -> None:
    file.write("[")
    for number, row in enumerate(rows):
        file.write((",\n " if number else "\n ") + _as_json(row))
    file.write("\n]\n")


def _jsonl(rows: Iterable[dict[str, Any]], file: IO[str]) -> None:
    for row in rows:
        file.write(_as_json(row) + "\n")


def _csv(rows: Iterable[dict[str, Any]], file: IO[str]) -> None:
    """The columns are those of the first row."""
    writer: csv.DictWriter[str] | None = None
    for row in map(_flat, rows):
        if writer is None:
            writer = csv.DictWriter(file, list(row), extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _encodable(value) for name, value in row.items()})


def _parquet(rows: Iterable[dict[str, Any]], file: IO[bytes]) -> None:
    """The columns are those of the first row; everything that is no number is text."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("parquet needs pyarrow: pip install 'ag2-parallel[data]'") from error
    flat: Iterator[dict[str, Any]] = map(_flat, rows)
    first = next(flat, {"schema": None, "run_id": None})
    if first["schema"] is not None:
        flat = chain([first], flat)
    kinds = {
        name: pa.float64() if name in _NUMBERS else pa.int64() if name in _WHOLE_NUMBERS else pa.string()
        for name in first
    }
    schema = pa.schema(list(kinds.items()))
    with parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(flat, _AT_ONCE)):
            columns = {name: [_fitting(row.get(name), name) for row in batch] for name in kinds}
            writer.write_table(pa.table(columns, schema=schema))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row without nested values: usage and error in columns of their own, the rest as JSON text."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "usage":
            flat |= {each: (value or {}).get(each) for each in _USAGE}
        elif name == "error" and not isinstance(value, str):
            flat |= {f"error_{each}": (value or {}).get(each) for each in _ERROR}
        elif isinstance(value, dict | list):
            flat[name] = _as_json(value)
        else:
            flat[name] = value
    return flat


def _fitting(value: Any, column: str) -> Any:
    if value is None or column in _NUMBERS or column in _WHOLE_NUMBERS:
        return value
    return _encodable(value if isinstance(value, str) else _as_json(value))


def _encodable(value: Any) -> Any:
    """Text that a file in UTF-8 can hold: lone surrogates are shown as their escapes."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    """NaN and the infinities are no JSON: null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    out = out.resolve()  # what a link leads to is written, and the link stays
    if out.is_dir():
        raise ConfigurationError(f"--out {out}: this is a folder; name a file in it")
    if out.exists() and not out.is_file():
        with _into(out) as file:
            yield file
        return
    partly = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(partly, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigurationError(f"--out {out}: the file cannot be made ({error.strerror})") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        partly.replace(out)
    except BaseException:
        partly.unlink(missing_ok=True)
        raise


@contextmanager
def _into(out: Path) -> Iterator[IO[bytes]]:
    """A device or a pipe is written to: a file must not take its place."""
    try:
        with out.open("wb") as file:
            yield file
    except OSError as error:
        raise ConfigurationError(f"--out {out}: it cannot be written ({error.strerror})") from error

"""Writers of result files. Each makes its file when the first row comes, for its owner alone."""

from __future__ import annotations

import csv
import io
import json
import os
from typing import IO, TYPE_CHECKING, Any, Protocol

from ag2_parallel.cli.output.result_rows import COLUMNS, json_text, table_row
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.tasks import safe_file_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Writer(Protocol):
    """Takes the rows of a run."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Take a row. It is in the file, or will be when the file is put in its place."""

    def close(self, summary: Mapping[str, Any]) -> None:
        """The run is over; `summary` has `run_id`, `stop_reason` and `metrics`."""


def opened(path: Path, *, append: bool) -> IO[bytes]:
    """A file to write to, made for its owner alone."""
    mode = os.O_APPEND if append else os.O_TRUNC
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o600)
    return os.fdopen(descriptor, "wb", buffering=0)


class JsonLines:
    """One result a line. Rows of further runs are added behind those that are there.

    A row is written in one piece. A line that a killed process left half is cut off before anything is added.

    Attributes:
        repaired: Bytes of a torn line that were cut off.
    """

    def __init__(self, path: Path, *, append: bool = True) -> None:
        """Nothing is touched yet."""
        self.repaired = 0
        self._path = path
        self._append = append
        self._file: IO[bytes] | None = None

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        self._open().write(json_text(row) + b"\n")

    def close(self, summary: Mapping[str, Any]) -> None:  # noqa: ARG002 - see `Writer`
        """See `Writer`."""
        self._open().close()

    def _open(self) -> IO[bytes]:
        if self._file is None:
            if self._append:
                self.repaired = repair(self._path)
            self._file = opened(self._path, append=self._append)
        return self._file


def repair(path: Path) -> int:
    """Make a file of JSON lines end with a whole line; returns how many bytes of a torn one were cut off."""
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        return 0
    with file:
        end = file.seek(0, os.SEEK_END)
        tail = b""
        at = end
        while at > 0 and b"\n" not in tail:
            step = min(at, 1 << 16)
            at -= step
            file.seek(at)
            tail = file.read(step) + tail
        line = tail.rpartition(b"\n")[2]
        if not line:
            return 0
        try:
            json.loads(line)
        except ValueError:
            file.truncate(end - len(line))
            return len(line)
        file.seek(end)
        file.write(b"\n")
        return 0


class _Placed:
    """A file that is written beside its place and put there whole when the run is over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._file: IO[bytes] | None = None

    def _open(self) -> tuple[IO[bytes], bool]:
        is_new = self._file is None
        if self._file is None:
            self._file = opened(self._part, append=False)
        return self._file, is_new

    def _place(self) -> None:
        if self._file is not None:
            self._file.close()
        self._part.replace(self._path)


class JsonDocument(_Placed):
    """One JSON document: `results`, a list of rows, and the run's summary."""

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        file, is_new = self._open()
        file.write((b'{"results": [\n' if is_new else b",\n") + json_text(row))

    def close(self, summary: Mapping[str, Any]) -> None:
        """See `Writer`."""
        file, is_new = self._open()
        file.write((b'{"results": [' if is_new else b"\n") + b"],\n" + json_text(summary)[1:] + b"\n")
        self._place()


class CsvTable:
    """A CSV file in UTF-8, one result a line, written as they come."""

    def __init__(self, path: Path) -> None:
        """Nothing is touched yet."""
        self._path = path
        self._file: IO[str] | None = None
        self._table: Any = None

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        table = self._open()
        table.writerow(table_row(row))
        assert self._file is not None
        self._file.flush()

    def close(self, summary: Mapping[str, Any]) -> None:  # noqa: ARG002 - see `Writer`
        """See `Writer`."""
        self._open()
        assert self._file is not None
        self._file.close()

    def _open(self) -> Any:
        if self._table is None:
            binary: Any = opened(self._path, append=False)
            self._file = io.TextIOWrapper(binary, encoding="utf-8", errors="backslashreplace", newline="")
            self._table = csv.DictWriter(self._file, list(COLUMNS), lineterminator="\n")
            self._table.writeheader()
        return self._table


class FileEach:
    """A folder with one JSON file for each task, each put in its place whole."""

    def __init__(self, folder: Path) -> None:
        """Nothing is touched yet."""
        self._folder = folder

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{safe_file_name(row['name'], row['index'])}.json"
        part = path.with_name(f".{path.name}.part")
        with opened(part, append=False) as file:
            file.write(json_text(row) + b"\n")
        part.replace(path)

    def close(self, summary: Mapping[str, Any]) -> None:  # noqa: ARG002 - see `Writer`
        """See `Writer`."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def writer_for(path: Path, *, overwrite: bool) -> Writer:
    """The writer that a path asks for by its ending; a folder where it has none.

    Raises:
        ConfigurationError: If results would replace what is there, or cannot be written there.
    """
    if path.is_dir() or not path.suffix:
        if path.exists() and not path.is_dir():
            raise ConfigurationError(f"--out: {path} has no ending that says a kind of file; name it {path}.jsonl")
        if path.is_dir() and any(path.iterdir()) and not overwrite:
            raise ConfigurationError(f"--out: the folder {path} is not empty; name a new one, or add --overwrite")
        _check_writable(path)
        return FileEach(path)
    kinds = {".jsonl": "lines", ".ndjson": "lines", ".json": "document", ".csv": "csv", ".parquet": "parquet"}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise ConfigurationError(f"--out: {path} must end in {', '.join(kinds)}, or be a folder")
    _check_writable(path)
    if kind == "lines":
        return JsonLines(path, append=not overwrite)
    if path.exists() and not overwrite:
        raise ConfigurationError(f"--out: {path} is there already; name a new file, or add --overwrite")
    if kind == "parquet":
        from ag2_parallel.cli.output.parquet_table import ParquetTable

        return ParquetTable(path)
    return JsonDocument(path) if kind == "document" else CsvTable(path)


def _check_writable(path: Path) -> None:
    folder = next(each for each in path.absolute().parents if each.exists())
    if path.suffix and folder != path.absolute().parent:
        raise ConfigurationError(f"--out: there is no folder {path.parent}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigurationError(f"--out: {path if path.exists() else folder} cannot be written to")

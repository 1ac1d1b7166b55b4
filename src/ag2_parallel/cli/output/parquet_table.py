"""Results as a Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.output.result_rows import COLUMNS, table_row
from ag2_parallel.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_GROUP: Final = 1000
"""Rows that are written together."""


class ParquetTable:
    """Written beside its place in groups of rows, and put there whole when the run is over."""

    def __init__(self, path: Path) -> None:
        """Nothing is touched yet.

        Raises:
            MissingExtraError: If pyarrow is not installed.
        """
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingExtraError('--out: Parquet needs pyarrow: pip install "ag2-parallel[data]"') from error
        types = {"int": pa.int64(), "text": pa.string(), "seconds": pa.float64()}
        self._schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._rows: list[dict[str, Any]] = []
        self._file: Any = None

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        self._rows.append({name: _sound(value) for name, value in table_row(row).items()})
        if len(self._rows) >= _GROUP:
            self._flush()

    def close(self, summary: Mapping[str, Any]) -> None:  # noqa: ARG002 - see `Writer`
        """See `Writer`."""
        self._flush()
        self._file.close()
        self._part.replace(self._path)

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._file is None:
            self._part.touch(mode=0o600)
            self._file = pq.ParquetWriter(self._part, self._schema)
        self._file.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []


def _sound(value: Any) -> Any:
    """Text that UTF-8 can hold: half of a surrogate pair is escaped."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value

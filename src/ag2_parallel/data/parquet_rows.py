"""Rows of a Parquet file, a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.data.row import Row
from ag2_parallel.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BATCH: Final = 256
"""Rows that are in memory at once."""


def parquet_rows(path: Path) -> Iterator[Row]:
    """Read a Parquet file.

    Raises:
        MissingExtraError: If pyarrow is not installed.
        ConfigurationError: If the file is no Parquet.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError('Parquet needs pyarrow: pip install "ag2-parallel[data]"') from error
    try:
        file: Any = pq.ParquetFile(path, memory_map=False, pre_buffer=False)
    except pa.ArrowException as error:
        raise ConfigurationError(f"{path} cannot be read as Parquet: {error}") from error
    with file:
        number = 0
        for batch in file.iter_batches(batch_size=_BATCH):
            for values in batch.to_pylist():
                number += 1
                yield Row(number, values)

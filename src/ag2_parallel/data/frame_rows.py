"""Rows that are in memory already: mappings, and the tables of pandas, polars, pyarrow and datasets."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Final

from ag2_parallel.data.row import Row
from ag2_parallel.errors import ConfigurationError

_BATCH: Final = 256


class MemoryRows:
    """Rows of a Python object: `ports` of data sets that are no files."""

    name = "rows"

    def __init__(self, rows: Any) -> None:
        """Refuse what has no rows.

        Raises:
            ConfigurationError: With what to pass in its place.
        """
        self._rows = rows
        self._read = _reading(rows)
        self.repeatable = not isinstance(rows, Iterator)

    def __iter__(self) -> Iterator[Row]:
        """Row by row; what is no mapping is a row with a problem."""
        for number, values in enumerate(self._read(self._rows), start=1):
            if isinstance(values, Mapping):
                yield Row(number, {str(key): value for key, value in values.items()})
            else:
                yield Row(number, problem=f"is a {type(values).__name__} and no mapping from columns to values")

    def count(self) -> int | None:
        """What the rows say of their number."""
        return len(self._rows) if isinstance(self._rows, Sized) else None


def _reading(rows: Any) -> Any:
    """The function that reads this kind of rows. No library is imported: what it makes can only be there if it is."""
    library, kind = type(rows).__module__.partition(".")[0], type(rows).__name__
    if library == "pandas" and kind == "DataFrame":
        return _of_pandas
    if library == "polars" and kind == "DataFrame":
        return lambda frame: frame.iter_rows(named=True)
    if library == "polars" and kind == "LazyFrame":
        raise ConfigurationError("rows: a polars LazyFrame has no rows yet; pass frame.collect()")
    if library == "pyarrow" and kind == "Table":
        return lambda table: (row for batch in table.to_batches(_BATCH) for row in batch.to_pylist())
    if isinstance(rows, Mapping):
        hint = "one split, such as rows['train']" if library == "datasets" else "a list of mappings, one for each row"
        raise ConfigurationError(f"rows: a {kind} is one mapping and no list of rows; pass {hint}")
    if isinstance(rows, AsyncIterable):
        raise ConfigurationError("rows: an async iterable is not taken; read it into a list or a plain generator")
    if isinstance(rows, bytes) or not isinstance(rows, Iterable):
        raise ConfigurationError(f"rows: a {kind} has no rows; pass mappings, a frame, or the path of a data file")
    return iter


def _of_pandas(frame: Any) -> Iterator[dict[str, Any]]:
    """A frame's rows with plain values; what is missing (NaN, NaT, NA) is None."""
    import pandas as pd

    columns = [str(column) for column in frame.columns]
    for start in range(0, len(frame), _BATCH):
        part = frame.iloc[start : start + _BATCH]
        gaps = part.isna().to_numpy()
        for values, missing in zip(part.itertuples(index=False, name=None), gaps, strict=True):
            yield {
                column: None if gap else value.to_pydatetime() if isinstance(value, pd.Timestamp) else value
                for column, value, gap in zip(columns, values, missing, strict=True)
            }


def is_listed(rows: Any) -> bool:
    """Whether rows are a list, whose tasks are checked all at once."""
    return isinstance(rows, Sequence) and not isinstance(rows, str)

"""One row of a data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it was read, or why it could not be.

    Attributes:
        number: From 1; headings and blank lines do not count.
        cells: Values by column.
        line: Of the file, from 1, where it has lines.
        problem: What is wrong with it.
    """

    number: int
    cells: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None
    problem: str | None = None

    @property
    def where(self) -> str:
        """Which row this is, for people."""
        return f"row {self.number}" if self.line is None else f"row {self.number} (line {self.line})"


class RowSource(Protocol):
    """A data set.

    Attributes:
        name: What people call it: a path, "standard input", "rows".
        repeatable: Whether it can be read more than once.
    """

    name: str
    repeatable: bool

    def __iter__(self) -> Iterator[Row]:
        """Read it from the start, row by row."""
        ...

    def count(self) -> int | None:
        """How many rows there are now, where that is quickly found out; None: not known."""
        ...

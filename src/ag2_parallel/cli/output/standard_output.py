"""Results on standard output: a table for people, JSON for programs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.output.result_rows import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.cli.output.writers import Writer

_SHOWN: Final = 100
"""Lines of a table; of a larger run the first failures and a count."""


class PrintedLines:
    """JSON lines, as results come."""

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        _put(json_text(row) + b"\n")

    def close(self, summary: Mapping[str, Any]) -> None:
        """See `Writer`."""


class PrintedDocument:
    """One JSON document."""

    def __init__(self) -> None:
        """Nothing is printed yet."""
        self._begun = False

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        _put((b",\n" if self._begun else b'{"results": [\n') + json_text(row))
        self._begun = True

    def close(self, summary: Mapping[str, Any]) -> None:
        """See `Writer`."""
        _put((b"\n" if self._begun else b'{"results": [') + b"],\n" + json_text(summary)[1:] + b"\n")


class PrintedTable:
    """A table when the run is over."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._rows: list[tuple[int, str, str, str, str]] = []
        self._bad: list[tuple[int, str, str, str, str]] = []
        self._count = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        self._count += 1
        error = row["error"]
        told = f"{error['kind']}: {error['message']}" if error else row["output"]
        if told is None:
            told = row["stop_reason"] or ""
        shown = (row["index"], row["name"], row["status"], f"{row['duration']:.1f} s", short(told))
        if self._count <= _SHOWN:
            self._rows.append(shown)
        if row["status"] != "succeeded" and len(self._bad) < _SHOWN:
            self._bad.append(shown)

    def close(self, summary: Mapping[str, Any]) -> None:  # noqa: ARG002 - see `Writer`
        """See `Writer`."""
        from rich.console import Console
        from rich.table import Table

        rows = self._rows if self._count <= _SHOWN else self._bad
        table = Table()
        for heading in ("task", "status", "time", "output or error"):
            table.add_column(heading, justify="right" if heading == "time" else "left", overflow="fold")
        from rich.text import Text

        for _, *cells in sorted(rows):
            table.add_row(*(Text(short(cell, 200)) for cell in cells))
        console = Console(highlight=False)
        if rows:
            console.print(table)
        if self._count > _SHOWN:
            console.print(f"{self._count} results; {len(self._bad)} that did not succeed are shown", markup=False)


def printer(form: str) -> Writer:
    """The writer for `--format`."""
    if form == "jsonl":
        return PrintedLines()
    return PrintedDocument() if form == "json" else PrintedTable()


def _put(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def short(value: object, limit: int = 160) -> str:
    """The beginning of a text in one line, control characters made visible."""
    text = value if isinstance(value, str) else json_text(value).decode()
    cut = text[:limit]
    shown = "".join(c if c.isprintable() else " " if c in "\n\r\t" else f"\\x{ord(c):02x}" for c in cut)
    return shown + ("…" if len(text) > limit else "")

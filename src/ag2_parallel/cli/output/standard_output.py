"""Results on standard output: a table for people, JSON for programs."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from ag2_parallel.cli.output.result_rows import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ag2_parallel.cli.output.writers import Writer

SHOWN: Final = 100
"""Lines of a table; of a larger run the first failures and a count."""


@contextmanager
def data_alone() -> Iterator[TextIO]:
    """Standard output for data alone, for the length of the block.

    What else is printed meanwhile goes to standard error: by modules that task files name while they are imported, and
    by log handlers such as those that AG2 makes for `sys.stdout`.
    """
    stdout = sys.stdout
    sys.stdout = sys.stderr
    try:
        yield stdout
    finally:
        sys.stdout = stdout


class PrintedLines:
    """JSON lines, as results come."""

    def __init__(self, stdout: TextIO) -> None:
        """Print on `stdout`."""
        self._stdout = stdout

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        _put(self._stdout, json_text(row) + b"\n")

    def close(self, summary: Mapping[str, Any]) -> None:
        """See `Writer`."""


class PrintedDocument:
    """One JSON document."""

    def __init__(self, stdout: TextIO) -> None:
        """Print on `stdout`; nothing is printed yet."""
        self._stdout = stdout
        self._begun = False

    def write(self, row: Mapping[str, Any]) -> None:
        """See `Writer`."""
        _put(self._stdout, (b",\n" if self._begun else b'{"results": [\n') + json_text(row))
        self._begun = True

    def close(self, summary: Mapping[str, Any]) -> None:
        """See `Writer`."""
        _put(self._stdout, (b"\n" if self._begun else b'{"results": [') + b"],\n" + json_text(summary)[1:] + b"\n")


class PrintedTable:
    """A table when the run is over."""

    def __init__(self, stdout: TextIO) -> None:
        """Print on `stdout`; nothing came yet."""
        self._stdout = stdout
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
        if self._count <= SHOWN:
            self._rows.append(shown)
        if row["status"] != "succeeded" and len(self._bad) < SHOWN:
            self._bad.append(shown)

    def close(self, summary: Mapping[str, Any]) -> None:  # noqa: ARG002 - see `Writer`
        """See `Writer`."""
        from rich.console import Console
        from rich.table import Table

        rows = self._rows if self._count <= SHOWN else self._bad
        table = Table()
        for heading in ("task", "status", "time", "output or error"):
            table.add_column(heading, justify="right" if heading == "time" else "left", overflow="fold")
        from rich.text import Text

        for _, *cells in sorted(rows):
            table.add_row(*(Text(short(cell, 200)) for cell in cells))
        console = Console(file=self._stdout, highlight=False)
        if rows:
            console.print(table)
        if self._count > SHOWN:
            console.print(f"{self._count} results; {len(self._bad)} that did not succeed are shown", markup=False)


def printer(form: str, stdout: TextIO) -> Writer:
    """The writer for `--format`."""
    if form == "jsonl":
        return PrintedLines(stdout)
    return PrintedDocument(stdout) if form == "json" else PrintedTable(stdout)


def _put(stdout: TextIO, content: bytes) -> None:
    stdout.buffer.write(content)
    stdout.buffer.flush()


def short(value: object, limit: int = 160) -> str:
    """The beginning of a text in one line, control characters made visible."""
    text = value if isinstance(value, str) else json_text(value).decode()
    cut = text[:limit]
    shown = "".join(c if c.isprintable() else " " if c in "\n\r\t" else f"\\x{ord(c):02x}" for c in cut)
    return shown + ("…" if len(text) > limit else "")

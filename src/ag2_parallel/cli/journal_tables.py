"""Runs and tasks of a journal as tables for people, and as short rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ag2_parallel.results import preview

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from ag2_parallel.journal.housekeeping import RunListing, StoredTask
    from ag2_parallel.journal.task_rows import TaskRow

_MOST_SHOWN: Final = 200
"""Tasks in a table: more than anybody reads there; the other forms have all."""

_WIDE: Final = 240


def run_row(listing: RunListing) -> dict[str, Any]:
    """A run in short."""
    row = asdict(listing)
    del row["number"]
    return row


def task_row(row: TaskRow) -> dict[str, Any]:
    """A task in short."""
    short = asdict(row)
    short["index"] = short.pop("place")
    short["group"] = short.pop("team")
    del short["task"], short["fingerprint"]
    return short


def whole_task(stored: StoredTask) -> dict[str, Any]:
    """A task with its result, and each attempt of every life."""
    known = stored.result.to_dict() if stored.result is not None else task_row(stored.row)
    return known | {"attempts_of_all_lives": stored.attempts}


def runs_table(listings: Sequence[RunListing]) -> list[RenderableType]:
    """One line for each run."""
    table = _table("run", "started", "state", "tasks", "tokens", "cost")
    for listing in listings:
        state = listing.state + (f" ({listing.stop_reason})" if listing.stop_reason else "")
        row = (
            listing.run_id,
            _moment(listing.started_at),
            state,
            _counts(listing),
            str(listing.tokens),
            _cost(listing),
        )
        table.add_row(*map(_cell, row))
    return [table]


def run_tables(listing: RunListing, rows: Iterable[TaskRow]) -> list[RenderableType]:
    """A run, and one line for each of its tasks."""
    table = _table("task", "status", "attempts", "duration", "calls", "tokens", "why")
    left_out = 0
    for number, row in enumerate(rows):
        if number >= _MOST_SHOWN:
            left_out += 1
            continue
        tokens = str(row.prompt_tokens + row.completion_tokens)
        why = row.error_kind or row.stop_reason or ""
        status = row.status or "unfinished"
        table.add_row(
            *map(_cell, (row.name, status, str(row.attempts), f"{row.duration:.1f} s", str(row.calls), tokens, why))
        )
    more = [Text(f"and {left_out} more; --format jsonl shows all")] if left_out else []
    return [*runs_table([listing]), table, *more]


def task_table(stored: StoredTask) -> list[RenderableType]:
    """A task's result, a line for each thing there is."""
    table = _table("task", stored.row.name)
    for name, value in whole_task(stored).items():
        if value not in (None, "", [], {}) and name != "name":
            table.add_row(_cell(name), _cell(preview(value, 2000) if isinstance(value, str) else preview(value, 400)))
    return [table]


def show_tables(tables: Iterable[RenderableType]) -> None:
    """Onto standard output."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE  # read by a program or kept in a file: lines stay whole
    for table in tables:
        console.print(table)


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for head in heads:
        table.add_column(_cell(head), overflow="fold")
    return table


def _cell(text: str) -> Text:
    """Text of any kind as something that does nothing to a terminal."""
    return Text("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text))


def _moment(stamp: str) -> str:
    return stamp[:19].replace("T", " ") + "Z"


def _counts(listing: RunListing) -> str:
    return ", ".join(f"{count} {status}" for status, count in listing.counts.items()) or "none"


def _cost(listing: RunListing) -> str:
    return "unknown" if listing.cost is None else f"${listing.cost:.4f}"

"""The commands that look into a journal: runs, show, export, prune."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ag2_parallel.cli import exit_codes
from ag2_parallel.cli.frame import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from rich.console import RenderableType

    from ag2_parallel.cli.termination import Termination

    Finish = Callable[[Callable[[Termination], int]], int]


class Shown(StrEnum):
    """Forms of a short answer."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


class Rows(StrEnum):
    """Forms of many rows."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


class What(StrEnum):
    """What of a run is exported."""

    TASKS = "tasks"
    CALLS = "calls"
    EVENTS = "events"


_File = Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal's file.")]
_Run = Annotated[str | None, typer.Argument(metavar="[RUN]", help="The run; default: the last one.")]
_RunOfTask = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="The run; default: the last one. It may be left out before TASK, too."),
]
_Form = Annotated[Shown, typer.Option("--format", help="How to show it.")]


def add_to(app: typer.Typer, finish: Finish) -> None:
    """Give the program these commands; `finish` runs one and makes an exit code of its errors."""

    @app.command()
    def runs(journal: _File, *, form: _Form = Shown.TABLE) -> None:
        """The runs in a journal, the last one at the end."""
        raise typer.Exit(finish(lambda _: _runs(journal, form)))

    @app.command()
    def show(
        journal: _File,
        run: _RunOfTask = None,
        task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="One of its tasks.")] = None,
        *,
        form: _Form = Shown.TABLE,
    ) -> None:
        """A run with its tasks, or one task with its result.

        A single name is the run of that name; where there is none, the task of that name in the last run.
        """
        raise typer.Exit(finish(lambda _: _show(journal, run, task, form)))

    @app.command()
    def export(
        journal: _File,
        run: _Run = None,
        *,
        what: Annotated[What, typer.Option(help="What of the run.")] = What.TASKS,
        form: Annotated[
            Rows | None, typer.Option("--format", help="In which form; default: that of --out's ending, else jsonl.")
        ] = None,
        out: Annotated[Path | None, typer.Option(help="Into this file; default: standard output.")] = None,
    ) -> None:
        """Everything of a run, for other programs."""
        raise typer.Exit(finish(lambda _: _export(journal, run, what, form, out)))

    @app.command()
    def prune(
        journal: _File,
        run: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Runs to delete.")] = None,
        *,
        older_than: Annotated[
            str | None, typer.Option(help="Delete runs last taken up so long ago, such as 30d, 12h or 45m.")
        ] = None,
        keep_last: Annotated[int | None, typer.Option(min=0, help="Keep so many of the last runs.")] = None,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which runs would go.")] = False,
    ) -> None:
        """Delete runs and give their room back: those named, or those that are old and not among the last."""
        raise typer.Exit(finish(lambda _: _prune(journal, run or [], older_than, keep_last, dry_run=dry_run)))


def _runs(journal: Path, form: Shown) -> int:
    from ag2_parallel.cli.journal_tables import run_row, runs_table
    from ag2_parallel.journal.housekeeping import list_runs
    from ag2_parallel.journal.sqlite import SqliteJournal

    listings = list_runs(SqliteJournal(journal))
    _answer([run_row(listing) for listing in listings], form, lambda: runs_table(listings))
    return exit_codes.OK


def _show(journal: Path, run: str | None, task: str | None, form: Shown) -> int:
    from ag2_parallel.cli import journal_tables as tables
    from ag2_parallel.journal import housekeeping
    from ag2_parallel.journal.sqlite import SqliteJournal

    store = SqliteJournal(journal)
    if run is not None and task is None:
        named = housekeeping.find_named(store, run)
        if named.run is not None and named.task:
            again = shlex.join(["ag2-parallel", "show", str(journal), named.last.run_id, run])
            say(f"{run!r} is a run; its namesake, a task of the last run: {again}")
        listing, task = (named.last, run) if named.run is None else (named.run, None)
    else:
        listing = housekeeping.find_run(store, run)
    if task is not None:
        stored = housekeeping.find_task(store, listing, task)
        _answer([tables.whole_task(stored)], form, lambda: tables.task_table(stored))
    else:
        rows = housekeeping.tasks(store, listing)
        _answer(map(tables.task_row, rows), form, lambda: tables.run_tables(listing, rows))
    return exit_codes.OK


def _export(journal: Path, run: str | None, what: What, form: Rows | None, out: Path | None) -> int:
    from ag2_parallel.cli.rows_out import write_rows
    from ag2_parallel.journal.exporting import exported_rows
    from ag2_parallel.journal.housekeeping import find_run
    from ag2_parallel.journal.sqlite import SqliteJournal

    if form is None:
        ending = "" if out is None else out.suffix.lower().removeprefix(".")
        form = Rows(ending) if ending in set(Rows) else Rows.JSONL
    store = SqliteJournal(journal)
    write_rows(exported_rows(store, find_run(store, run), what.value), form.value, out)
    return exit_codes.OK


def _prune(journal: Path, run_ids: list[str], older_than: str | None, keep_last: int | None, *, dry_run: bool) -> int:
    from datetime import UTC, datetime

    from ag2_parallel.errors import ConfigurationError
    from ag2_parallel.journal import housekeeping
    from ag2_parallel.journal.sqlite import SqliteJournal

    if not run_ids and older_than is None and keep_last is None:
        raise ConfigurationError("prune: name runs, or give --older-than or --keep-last")
    if run_ids and (older_than is not None or keep_last is not None):
        raise ConfigurationError("prune: name runs, or give --older-than and --keep-last, not both")
    age = None if older_than is None else _age(older_than)
    store = SqliteJournal(journal)
    for run_id in run_ids:
        housekeeping.find_run(store, run_id)
    listings = housekeeping.list_runs(store)
    going = housekeeping.to_prune(listings, run_ids=run_ids, older_than=age, keep_last=keep_last, now=datetime.now(UTC))
    if not dry_run:
        housekeeping.prune(store, going)
    if not going:
        kept = ", ".join(housekeeping.why_kept(listings, older_than=age, keep_last=keep_last))
        why = f"its runs stay: {kept}" if kept else "there is no run in it"
        say(f"nothing {'would be' if dry_run else 'was'} removed from {journal}; {why}")
    for listing in going:
        typer.echo(listing.run_id)
    return exit_codes.OK


def _age(text: str) -> timedelta:
    from datetime import timedelta

    from ag2_parallel.errors import ConfigurationError

    seconds = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}.get(text[-1:])
    number = text[:-1]
    if seconds is None or not (number.isascii() and number.isdigit()) or len(number) > 6:
        raise ConfigurationError(f"prune: --older-than {text!r} is no age such as 30d, 12h or 45m")
    return timedelta(seconds=seconds * int(number))


def _answer(rows: Iterable[dict[str, Any]], form: Shown, tables: Callable[[], Iterable[RenderableType]]) -> None:
    if form is Shown.TABLE:
        from ag2_parallel.cli.journal_tables import show_tables

        show_tables(tables())
    else:
        from ag2_parallel.cli.rows_out import write_rows

        write_rows(rows, form.value, None)

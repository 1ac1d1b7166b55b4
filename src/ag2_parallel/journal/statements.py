"""The SQL beside this file: the schema, its upgrades, and every statement by its name."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def sql_file(name: str) -> str:
    """The text of one of the SQL files."""
    return files("ag2_parallel.journal").joinpath(name).read_text(encoding="utf-8")


@cache
def queries() -> Mapping[str, str]:
    """The statements of queries.sql by name, read once."""
    parts = _NAME.split(sql_file("queries.sql"))
    return {name: statement.strip() for name, statement in zip(parts[1::2], parts[2::2], strict=True)}


def split(script: str) -> Iterator[str]:
    """The statements of a script one by one, so that they can be part of a transaction that is open already."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""

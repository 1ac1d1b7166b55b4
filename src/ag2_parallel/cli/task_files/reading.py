"""Task files of every kind, read and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.task_files.checking import checked
from ag2_parallel.cli.task_files.document import Document, Inside, Place
from ag2_parallel.cli.task_files.json_document import json_document
from ag2_parallel.cli.task_files.models import Task, TaskFile
from ag2_parallel.data.csv_rows import csv_rows
from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from ag2_parallel.cli.task_files.variables import Variables
    from ag2_parallel.data.row import Row

_JSON_CELLS: Final = ("agent_config", "context", "summary_args")


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task as a file says it, and where."""

    task: Task
    document: Document
    inside: Inside


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file's content."""

    path: Path
    document: Document | None = None
    content: TaskFile = field(default_factory=TaskFile)
    tasks: list[ListedTask] = field(default_factory=list)

    @property
    def home(self) -> Document:
        """The document; of a file that lists tasks only, an empty one."""
        return self.document or Document(self.path, {}, lambda _inside: Place())


def read_task_file(path: Path, variables: Variables) -> ReadFile:
    """Read a task file: .yaml, .yml, .json, .jsonl or .csv.

    Raises:
        ConfigurationError: With every problem, each with file and line.
    """
    readers = {
        ".yaml": _read_whole, ".yml": _read_whole, ".json": _read_whole,
        ".jsonl": _read_lines, ".ndjson": _read_lines, ".csv": _read_table, ".tsv": _read_table,
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigurationError(f"{path}: task files end in {', '.join(readers)}")
    try:
        return reader(path, variables)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        told = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}:{line}: {told}") from None


def _read_whole(path: Path, variables: Variables) -> ReadFile:
    text = path.read_bytes().decode("utf-8-sig")
    if path.suffix.lower() == ".json":
        document = json_document(path, text)
    else:
        from ag2_parallel.cli.task_files.yaml_document import yaml_document

        document = yaml_document(path, text)
    document = variables.fill(document)
    if isinstance(document.data, list):
        problems: list[str] = []
        tasks = [_listed(document, (at,), item, problems) for at, item in enumerate(document.data)]
        return _file(path, tasks, problems)
    content = checked(TaskFile, document)
    listed = [ListedTask(task, document, ("tasks", at)) for at, task in enumerate(content.tasks)]
    return ReadFile(path, document, content, listed)


def _read_lines(path: Path, variables: Variables) -> ReadFile:
    problems: list[str] = []
    tasks: list[ListedTask | None] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                document = variables.fill(json_document(path, text.rstrip("\r\n"), number))
            except UnicodeDecodeError as error:
                told = f"byte 0x{line[error.start]:02x} at {error.start + 1} is not UTF-8; save the file as UTF-8"
                problems.append(f"{path}:{number}: {told}")
            except ConfigurationError as error:
                problems += error.problems
            else:
                tasks.append(_listed(document, (), document.data, problems))
    return _file(path, tasks, problems)


def _read_table(path: Path, variables: Variables) -> ReadFile:
    problems: list[str] = []
    tasks: list[ListedTask | None] = []
    with path.open("rb") as binary:
        for row in csv_rows(binary, str(path)):
            if row.problem is not None:
                problems.append(f"{path}:{row.line}: row {row.number} {row.problem}")
                continue
            if row.number == 1:
                _check_columns(path, row)
            try:
                document = variables.fill(_of_cells(path, row))
            except ConfigurationError as error:
                problems += error.problems
            else:
                tasks.append(_listed(document, (), document.data, problems))
    return _file(path, tasks, problems)


def _check_columns(path: Path, row: Row) -> None:
    known = list(Task.model_fields)
    unknown = [column for column in row.cells if column not in known]
    if "name" in row.cells and not unknown:
        return
    hints = [
        f"{column!r}" + "".join(f" (did you mean {near!r}?)" for near in get_close_matches(column, known, n=1))
        for column in unknown
    ]
    told = f"unknown columns {', '.join(hints)}" if unknown else "there is no column 'name'"
    found = f"the columns found are {', '.join(map(repr, row.cells))}; a task may have {', '.join(known)}"
    raise ConfigurationError(f"{path}:1: {told}; {found}; for a data set of other columns use ag2-parallel map")


def _of_cells(path: Path, row: Row) -> Document:
    """A row as a task's data: empty cells say nothing, and what is no text stands as JSON in its cell."""
    data: dict[str, Any] = {column: cell for column, cell in row.cells.items() if cell}

    def find(_inside: Inside) -> Place:
        return Place(row.line)

    document = Document(path, data, find)
    for column, cell in list(data.items()):
        if column in _JSON_CELLS or (column in {"metadata", "depends_on"} and cell[:1] in "{["):
            try:
                data[column] = json.loads(cell)
            except ValueError as error:
                raise document.error(f"no valid JSON: {error}", (column,)) from None
        elif column == "depends_on":
            data[column] = [name for part in cell.split(";") if (name := part.strip())]
    return document


def _listed(document: Document, inside: Inside, data: Any, problems: list[str]) -> ListedTask | None:
    try:
        return ListedTask(checked(Task, document, inside, data), document, inside)
    except ConfigurationError as error:
        problems += error.problems
        return None


def _file(path: Path, tasks: list[ListedTask | None], problems: list[str]) -> ReadFile:
    if problems:
        raise ConfigurationError(problems)
    return ReadFile(path, tasks=[task for task in tasks if task is not None])

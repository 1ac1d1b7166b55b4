"""What a set of task files asks for: options, tasks, and tasks still to be read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel import validation
from ag2_parallel.cli.task_files.agents import Agents
from ag2_parallel.cli.task_files.planner import Planner
from ag2_parallel.cli.task_files.reading import read_task_file
from ag2_parallel.cli.task_files.run_options import merged_options
from ag2_parallel.cli.task_files.variables import Variables
from ag2_parallel.core.task_source import known_total
from ag2_parallel.errors import ConfigurationError, DuplicateTaskError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ag2_parallel.cli.task_files.reading import ListedTask, ReadFile
    from ag2_parallel.data.mapped_tasks import RowTasks
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.tasks import ParallelTask


_ROWS: Final = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"})
"""Endings of data sets; such a file has no agents."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes:
        options: Keyword arguments of `ParallelAgentRunner`.
        tasks: The tasks that the files list.
        sources: Those that are made of data sets, while these are read.
        places: Where each listed task stands, by `validation.name_key` of its name.
        redactor: Knows the values of environment variables that hold keys.
    """

    options: dict[str, Any] = field(repr=False)
    tasks: list[ParallelTask]
    sources: list[RowTasks]
    places: Mapping[str, str]
    redactor: Redactor = field(repr=False)

    def all_tasks(self) -> Iterable[Any]:
        """A list, which a run checks whole, where nothing is read on the way; else what is read as it goes."""
        return ReadInTurn(self.tasks, *self.sources) if self.sources else self.tasks

    def located(self, error: ConfigurationError) -> ConfigurationError:
        """The error with the file and line before each problem of a listed task."""

        def with_place(problem: str) -> str:
            found = re.match(r'task "(.*?)": ', problem)
            place = self.places.get(validation.name_key(found[1])) if found else None
            return f"{place}: {problem}" if place else problem

        return type(error)([with_place(problem) for problem in error.problems])


class ReadInTurn(Iterable[Any]):
    """Tasks of several places, one after the other, from the start each time.

    Attributes:
        repeatable: Whether they can be read more than once.
        alike: What all tasks of a part have in common, by the part's name.
    """

    def __init__(self, *parts: Any) -> None:
        self._parts = parts
        self.alike = {name: task for part in parts for name, task in getattr(part, "alike", {}).items()}
        self.repeatable = all(getattr(part, "repeatable", True) for part in parts)

    @property
    def total(self) -> int | None:
        """How many tasks there are; None: not known of a part."""
        totals = [known_total(part) for part in self._parts]
        return None if None in totals else sum(total or 0 for total in totals)

    def __iter__(self) -> Iterator[Any]:
        """Task by task."""
        return itertools.chain(*self._parts)


@dataclass(frozen=True, slots=True)
class RowsWanted:
    """A data set that the command line names, for the agents of a file.

    Attributes:
        data: Path, or "-".
        prompt: Template; None: the file's defaults have one.
        name: Template; None: numbered.
        agent: A key of the file's agents or teams; None: the only one there is.
        encoding: Of the data; None: UTF-8.
    """

    data: str
    prompt: str | None = None
    name: str | None = None
    agent: str | None = None
    encoding: str | None = None


def read_plan(paths: Sequence[Path], environment: Mapping[str, str], rows: RowsWanted | None = None) -> Plan:
    """Read task files; several are taken together, so that one may name the agents and another the tasks.

    Args:
        paths: The files.
        environment: Where `${NAME}` is looked up.
        rows: A data set, in place of the files' own tasks.

    Raises:
        ConfigurationError: With every problem of a file, each with file, line, column and the path inside.
    """
    variables = Variables(environment)
    try:
        return _read(paths, variables, rows)
    except ConfigurationError as error:
        raise type(error)([variables.redactor.text(problem) for problem in error.problems]) from None


def _read(paths: Sequence[Path], variables: Variables, rows: RowsWanted | None) -> Plan:
    if rows is not None and (data := next((path for path in paths if path.suffix.lower() in _ROWS), None)):
        raise ConfigurationError(
            f"{data}: the task file with the model and the agents comes first, and the data set after it"
        )
    files = [read_task_file(path, variables) for path in paths]
    llm_config = _once(files, "llm_config")
    options = merged_options(files)
    if llm_config is not None:
        options["llm_config"] = llm_config
    planner = Planner(Agents(files, llm_config), _once(files, "defaults"), files[0].home)
    if rows is not None:
        return Plan(options, [], [planner.mapped(rows)], {}, variables.redactor)
    listed = [task for file in files for task in file.tasks]
    places = _places(listed)
    tasks = planner.each(planner.task, listed)
    wanted = [(file, at) for file in files for at in range(len(file.content.tasks_from))]
    sources = planner.each(planner.source, wanted)
    if not tasks and not sources:
        raise ConfigurationError(f"{', '.join(map(str, paths))}: there is no task; write tasks: or tasks_from:")
    return Plan(options, tasks, sources, places, variables.redactor)


def _once(files: Sequence[ReadFile], name: str) -> Any:
    """What at most one of the files may say."""
    saying = [file for file in files if getattr(file.content, name) is not None]
    if len(saying) > 1:
        assert saying[1].document is not None
        raise saying[1].document.error(f"{saying[0].path} has {name} too; keep one", (name,))
    return getattr(saying[0].content, name) if saying else None


def _places(listed: Sequence[ListedTask]) -> dict[str, str]:
    """Where each task stands.

    Raises:
        DuplicateTaskError: With both places of each name that is there twice.
    """
    places: dict[str, str] = {}
    problems = []
    for each in listed:
        key = validation.name_key(each.task.name)
        here = each.document.where(each.inside)
        if key in places:
            told = f'the task name "{each.task.name}" is used at {places[key]} already'
            problems.append(f"{here}: {told}; give each task a name of its own")
        else:
            places[key] = here
    if problems:
        raise DuplicateTaskError(problems)
    return places

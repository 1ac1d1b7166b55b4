"""What a set of task files asks for: options, tasks, and tasks still to be read."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel import validation
from ag2_parallel.cli.task_files.agents import Agents, located
from ag2_parallel.cli.task_files.reading import read_task_file
from ag2_parallel.cli.task_files.run_options import merged_options
from ag2_parallel.cli.task_files.variables import Variables
from ag2_parallel.data.mapped_tasks import RowTasks, task_for
from ag2_parallel.data.sources import row_source
from ag2_parallel.errors import ConfigurationError, DuplicateTaskError
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.tasks import ParallelTask, Template
from ag2_parallel.templating import CompiledTemplate, TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ag2_parallel.cli.task_files.document import Document, Inside
    from ag2_parallel.cli.task_files.models import TaskFields, TasksFrom
    from ag2_parallel.cli.task_files.reading import ListedTask, ReadFile

_EITHER: Final = (("prompt", "prompt_template"), ("agent", "agent_config", "run"))
"""Fields of which a task's own one replaces all those of the defaults."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes:
        options: Keyword arguments of `ParallelAgentRunner`.
        tasks: The tasks that the files list.
        sources: Those that are made of data sets, while these are read.
        places: Where each listed task stands, by `validation.name_key` of its name.
        secrets: Values of environment variables that hold keys.
    """

    options: dict[str, Any] = field(repr=False)
    tasks: list[ParallelTask]
    sources: list[RowTasks]
    places: Mapping[str, str]
    secrets: Mapping[str, str] = field(repr=False)

    def all_tasks(self) -> Iterable[Any]:
        """A list, which a run checks whole, where nothing is read on the way; else an iterator."""
        return itertools.chain(self.tasks, *self.sources) if self.sources else self.tasks

    def located(self, error: ConfigurationError) -> ConfigurationError:
        """The error with the file and line before each problem of a listed task."""

        def with_place(problem: str) -> str:
            found = re.match(r'task "(.*?)": ', problem)
            place = self.places.get(validation.name_key(found[1])) if found else None
            return f"{place}: {problem}" if place else problem

        return type(error)([with_place(problem) for problem in error.problems])


def read_plan(paths: Sequence[Path], environment: Mapping[str, str]) -> Plan:
    """Read task files; several are taken together, so that one may name the agents and another the tasks.

    Raises:
        ConfigurationError: With every problem of a file, each with file, line, column and the path inside.
    """
    variables = Variables(environment)
    files = [read_task_file(path, variables) for path in paths]
    llm_config = _once(files, "llm_config")
    options = merged_options(files)
    if llm_config is not None:
        options["llm_config"] = llm_config
    planner = _Planner(Agents(files, llm_config), _once(files, "defaults"))
    listed = [task for file in files for task in file.tasks]
    places = _places(listed)
    tasks = planner.each(planner.task, listed)
    wanted = [(file, at) for file in files for at in range(len(file.content.tasks_from))]
    sources = planner.each(planner.source, wanted)
    if not tasks and not sources:
        raise ConfigurationError(f"{', '.join(map(str, paths))}: there is no task; write tasks: or tasks_from:")
    return Plan(options, tasks, sources, places, dict(variables.secrets))


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


class _Planner:
    """Makes tasks of what files say."""

    def __init__(self, agents: Agents, defaults: TaskFields | None) -> None:
        self._agents = agents
        self._defaults = defaults

    @staticmethod
    def each(make: Any, items: Iterable[Any]) -> list[Any]:
        """Make all, and raise all problems together."""
        made: list[Any] = []
        problems: list[str] = []
        for item in items:
            try:
                made.append(make(item))
            except ConfigurationError as error:
                problems += error.problems
        if problems:
            raise ConfigurationError(problems)
        return made

    def task(self, listed: ListedTask) -> ParallelTask:
        task, document, inside = listed.task, listed.document, listed.inside
        said = self._said(task, {"name", "depends_on"})
        prompt = said.pop("prompt", None)
        if (template := said.pop("prompt_template", None)) is not None:
            _check_template(template, document, (*inside, "prompt_template"))
            prompt = Template(template)
        if prompt is None:
            raise document.error("it has neither prompt nor prompt_template", inside)
        fields = self._fields(said, document, inside)
        return ParallelTask(task.name, prompt, depends_on=task.depends_on, **fields)

    def source(self, wanted: tuple[ReadFile, int]) -> RowTasks:
        file, at = wanted
        document, model = file.document, file.content.tasks_from[at]
        assert document is not None
        inside: Inside = ("tasks_from", at)
        said = self._said(model, {"data", "name", "encoding"})
        prompt, template = said.pop("prompt", None), said.pop("prompt_template", None)
        if prompt is not None and not isinstance(prompt, str):
            raise document.error("a data set's prompt is text, or a prompt_template", (*inside, "prompt"))
        if prompt is None and template is None:
            raise document.error("it has neither prompt nor prompt_template", inside)
        fields = self._fields(said, document, inside)
        try:
            compiled = str(prompt) if template is None else CompiledTemplate(template, refuse_none=True)
            rows = row_source(model.data if model.data == "-" else file.path.parent / model.data, model.encoding)
            return RowTasks(rows, compiled, model.name, task_for(None, fields))
        except ConfigurationError as error:
            raise ConfigurationError([f"{document.where(inside)}: {problem}" for problem in error.problems]) from None
        except TemplateError as error:
            raise document.error(f"the template does not parse: {error}", (*inside, "prompt_template")) from None

    def _said(self, model: TaskFields | TasksFrom, without: set[str]) -> dict[str, Any]:
        """The fields that a task says itself, over those of the defaults."""
        own = {name: getattr(model, name) for name in model.model_fields_set - without}
        usual = (
            {} if self._defaults is None else {n: getattr(self._defaults, n) for n in self._defaults.model_fields_set}
        )
        for names in _EITHER:
            if own.keys() & set(names):
                usual = {name: value for name, value in usual.items() if name not in names}
        return {**usual, **own}

    def _fields(self, said: dict[str, Any], document: Document, inside: Inside) -> dict[str, Any]:
        """Keyword arguments of `ParallelTask`."""
        fields = dict(said)
        if (agent := fields.pop("agent", None)) is not None:
            fields = {**self._agents.fields(agent, document, (*inside, "agent")), **fields}
        if (retry := fields.get("retry")) is not None:
            fields["retry"] = RetryPolicy(**retry.model_dump())
        for name in ("accept", "output_type"):
            if (path := fields.get(name)) is not None:
                fields[name] = located(path, document, (*inside, name))
        if (path := fields.get("run")) is not None:
            located(path, document, (*inside, "run"))  # found now, imported by name where it runs
        return fields


def _check_template(text: str, document: Document, inside: Inside) -> None:
    try:
        needed = CompiledTemplate(text).needed - {"upstream", "context", "metadata"}
    except TemplateError as error:
        raise document.error(f"the template does not parse: {error}", inside) from None
    if needed:
        told = ", ".join(sorted(needed))
        raise document.error(f"the template needs {told}; a task's has upstream, context and metadata", inside)

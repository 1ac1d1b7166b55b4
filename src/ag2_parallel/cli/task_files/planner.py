"""Tasks of what task files say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.cli.task_files.agents import Agents, located
from ag2_parallel.data.mapped_tasks import RowTasks, task_for
from ag2_parallel.data.sources import row_source
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.tasks import ParallelTask, Template
from ag2_parallel.templating import CompiledTemplate, TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ag2_parallel.cli.task_files.document import Document, Inside
    from ag2_parallel.cli.task_files.models import TaskFields, TasksFrom
    from ag2_parallel.cli.task_files.plan import RowsWanted
    from ag2_parallel.cli.task_files.reading import ListedTask, ReadFile

_EITHER: Final = (("prompt", "prompt_template"), ("agent", "agent_config", "run"))
"""Fields of which a task's own one replaces all those of the defaults."""


class Planner:
    """Makes tasks of what files say."""

    def __init__(self, agents: Agents, defaults: TaskFields | None, home: Document) -> None:
        """Take what all tasks share.

        Args:
            agents: By name.
            defaults: For what a task does not say.
            home: The file that problems of what no file says are told about.
        """
        self._agents = agents
        self._defaults = defaults
        self._home = home

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
        """A task that a file lists."""
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
        """The tasks of a file's data set, by its position."""
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

    def mapped(self, rows: RowsWanted) -> RowTasks:
        """The tasks of a data set that the command line names."""
        said = (
            {} if self._defaults is None else {n: getattr(self._defaults, n) for n in self._defaults.model_fields_set}
        )
        usual, literal = said.pop("prompt_template", None), said.pop("prompt", None)
        if rows.agent is not None or not {"agent", "agent_config", "run"} & said.keys():
            said = {name: value for name, value in said.items() if name not in {"agent", "agent_config", "run"}}
            said |= self._agents.chosen(rows.agent)
        template = rows.prompt or usual
        if template is None and not isinstance(literal, str):
            raise ConfigurationError(
                'there is no prompt; add --prompt "Summarise {{ text }}", with columns of the data'
            )
        try:
            prompt = str(literal) if template is None else CompiledTemplate(template, refuse_none=True)
        except TemplateError as error:
            raise ConfigurationError(f"--prompt: the template does not parse: {error}") from None
        fields = self._fields(said, self._home, ("defaults",))
        return RowTasks(row_source(rows.data, rows.encoding), prompt, rows.name, task_for(None, fields))

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

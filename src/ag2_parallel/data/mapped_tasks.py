"""One task for each row of a data set."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from ag2_parallel.data.frame_rows import is_listed
from ag2_parallel.data.row import Row
from ag2_parallel.data.sources import row_source
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.tasks import TASK_FIELDS, ParallelTask, RefusedTask, Template
from ag2_parallel.templating import CompiledTemplate, TemplateError
from ag2_parallel.validation import name_problem

if TYPE_CHECKING:
    from ag2_parallel.data.row import RowSource

RowTask: TypeAlias = "ParallelTask | RefusedTask"

_FIELDS = tuple(name for name in TASK_FIELDS if name not in {"name", "prompt"})


def tasks_from_rows(
    agent: Any, rows: Any, prompt: str | Template, name: str | None = None, **task_fields: Any
) -> Iterable[RowTask]:
    """One task for each row of a data set, made when it is read.

    `ParallelAgentRunner.map` is `run` of this; pass it to `stream`, `arun`, `astream`, `start` or `events` for their
    ways of running.

    Args:
        agent: What a task may have: an `agent_config` dict, a live agent or team used as a template, a factory,
            `"module:attribute"`; None where `run=` is given or the runner has an `llm_config`.
        rows: An iterable of mappings; a pandas, polars, pyarrow or datasets table; the path of a CSV, JSONL, JSON
            or Parquet file or of a folder of text files; "-" for standard input.
        prompt: A sandboxed Jinja2 template over the row's columns; `row` is the row itself, for columns whose names
            are no Python names: `{{ row["patient id"] }}`.
        name: Likewise for the task's name, in one line; None: `row-000001` and so on.
        **task_fields: The other fields of `ParallelTask`, the same for every row.

    Returns:
        A list for a list of rows, checked whole; else an iterable that reads as tasks are taken. A row that is no
        good is then a failed result of kind `configuration` that names it.

    Raises:
        ConfigurationError: For a template that does not parse or needs a column that the first row has not, for
            an unknown field, and for every bad row of a list.
    """
    mapped = RowTasks(row_source(rows), _template("prompt", prompt), name, task_for(agent, task_fields))
    if not is_listed(rows):
        return mapped
    tasks = list(mapped)
    problems = [task.problem for task in tasks if isinstance(task, RefusedTask)]
    if problems:
        raise ConfigurationError(problems)
    return tasks


class RowTasks(Iterable[RowTask]):
    """The tasks of a data set. Its first row is read at once, to compare the templates with the columns."""

    def __init__(
        self,
        source: RowSource,
        prompt: CompiledTemplate | str,
        name: str | None,
        make: Callable[[str, str, Row], ParallelTask],
    ) -> None:
        """Compile and compare.

        Args:
            source: The rows.
            prompt: A template, or text that is the same for every row.
            name: A template; None: numbered.
            make: A task from its name, its prompt and its row.

        Raises:
            ConfigurationError: For a template that cannot fit the rows.
        """
        self._source = source
        self._prompt = prompt
        self._name = None if name is None else _template("name", name)
        self._make = make
        self._started: Iterator[Row] | None = None
        self._compare()

    @property
    def repeatable(self) -> bool:
        """Whether they can be read more than once."""
        return self._source.repeatable

    @property
    def total(self) -> int | None:
        """How many tasks there are, where that is quickly found out; None: not known."""
        return self._source.count()

    @property
    def alike(self) -> Mapping[str, ParallelTask]:
        """What all tasks have in common, by the name of the data set."""
        return {f"every row of {self._source.name}": self._make("row", "a prompt", Row(0))}

    def _compare(self) -> None:
        rows = iter(self._source)
        first = next(rows, None)
        if not self._source.repeatable and first is not None:
            self._started = itertools.chain([first], rows)
        elif (close := getattr(rows, "close", None)) is not None:
            close()
        if first is None or first.problem is not None:
            return
        templates = {"prompt": self._prompt, "name": self._name}
        problems = [
            problem
            for what, template in templates.items()
            if template is not None
            for problem in _misfits(what, template, list(first.cells), self._source.name)
        ]
        if problems:
            raise ConfigurationError(problems)

    def __iter__(self) -> Iterator[RowTask]:
        """Task by task."""
        rows, self._started = self._started or iter(self._source), None
        for row in rows:
            yield self._task(row)

    def _task(self, row: Row) -> RowTask:
        name = f"row-{row.number:06d}"
        if row.problem is not None:
            return RefusedTask(name, f"{row.where} of {self._source.name}: {row.problem}")
        values = {"row": row.cells, **row.cells}
        what = "name"
        try:
            if self._name is not None:
                shown = self._name.render(values).strip()
                if (problem := name_problem(shown)) is not None:
                    empty = [repr(column) for column in sorted(self._name.needed) if values.get(column) == ""]
                    of_columns = f"; its template's column {', '.join(empty)} is empty" if empty else ""
                    return self._refused(name, row, problem + of_columns)
                name = shown
            what = "prompt"
            prompt = self._prompt if isinstance(self._prompt, str) else self._prompt.render(values)
        except TemplateError as error:
            return self._refused(name, row, f"its {what} template does not render: {error}")
        return self._make(name, prompt, row)

    def _refused(self, name: str, row: Row, problem: str) -> RefusedTask:
        return RefusedTask(name, f"{row.where} of {self._source.name}: {problem}")


def task_for(agent: Any, fields: Mapping[str, Any]) -> Callable[[str, str, Row], ParallelTask]:
    """A function that makes a row's task.

    Args:
        agent: An `agent_config` dict, or anything else a task's `agent` may be; None: neither.
        fields: The other fields of all tasks.

    Raises:
        ConfigurationError: For a field that tasks have not.
    """
    unknown = [_unknown(field) for field in fields if field not in _FIELDS]
    if unknown:
        raise ConfigurationError(unknown)
    given = dict(fields)
    if agent is not None:
        given["agent_config" if isinstance(agent, Mapping) else "agent"] = agent

    def make(name: str, prompt: str, _row: Row) -> ParallelTask:
        return ParallelTask(name, prompt, **given)

    return make


def _template(what: str, template: str | Template) -> CompiledTemplate:
    text = template.text if isinstance(template, Template) else template
    if not isinstance(text, str):
        raise ConfigurationError(
            f"{what}: a {type(template).__name__} is no template; pass text such as '{{{{ id }}}}'"
        )
    try:
        return CompiledTemplate(text, refuse_none=True)
    except TemplateError as error:
        raise ConfigurationError(f"{what}: the template does not parse: {error}") from error


def _misfits(what: str, template: CompiledTemplate | str, columns: list[str], source: str) -> Iterator[str]:
    """What keeps a template, or text that is the same for every row, from being meant for these columns."""
    used = set() if isinstance(template, str) else template.needed | template.optional
    for name in sorted(set() if isinstance(template, str) else template.needed - {"row"} - set(columns)):
        near = get_close_matches(name, columns, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        yield f"{what}: the template needs {name!r}, and {source} has the columns {', '.join(columns)}{hint}"
    text = template if isinstance(template, str) else template.text
    names = "|".join(map(re.escape, filter(None, columns)))
    place = re.search(rf"\{{\{{?-?\s*({names})\s*(?:\|[^{{}}]*)?-?\}}\}}?", text) if names and not used else None
    if place is not None:
        how = "a prompt_template in place of it" if text is template else f"{{{{ {place[1]} }}}}"
        yield f"{what}: {place[0]} is plain text in it, and the same for every row of {source}; write {how}"


def _unknown(field: str) -> str:
    near = get_close_matches(field, _FIELDS, n=1, cutoff=0.5)
    return f"unknown task field {field!r}" + (f"; did you mean {near[0]!r}?" if near else "")

"""Where a run's tasks come from: a list, a source that is read as it goes, or the name of one of them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.tasks import TASK_FIELDS, ParallelTask

if TYPE_CHECKING:
    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.core.intake import Intake


@dataclass(slots=True)
class TaskSource:
    """The tasks as they were given.

    Attributes:
        listed: The tasks of a list, checked whole.
        source: What is read one by one, where there is no list.
        found_by: What finds the tasks again in another process; None where nothing does.
    """

    listed: list[NewTask] | None
    source: Any
    found_by: Mapping[str, Any] | None

    @property
    def is_async(self) -> bool:
        """Whether the tasks come from an async source."""
        return isinstance(self.source, AsyncIterable)

    @property
    def total(self) -> int | None:
        """How many tasks there are; None: not known. May read a file."""
        return len(self.listed) if self.listed is not None else known_total(self.source)


def known_total(tasks: Any) -> int | None:
    """How many tasks there are: of a list, or of a source that says it in an attribute `total`; None: not known."""
    total = len(tasks) if isinstance(tasks, list | tuple) else getattr(tasks, "total", None)
    return total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else None


def task_source(tasks: Any, intake: Intake, locate: Callable[[str], Any]) -> TaskSource:
    """Take tasks, or "module:attribute" that names them or a function that makes them.

    What reads tasks from a file says in an attribute `found_by`, plain data, how to find them again, and may say in
    `alike` what they have in common, and in `total` how many there are.

    Raises:
        ConfigurationError: With every problem of every task of a list, or of what all tasks of a source have in common.
    """
    found_by: Mapping[str, Any] | None = getattr(tasks, "found_by", None)
    if isinstance(tasks, str) and all(tasks.partition(":")):
        found_by = {"attribute": tasks}
        tasks = locate(tasks)
        tasks = tasks() if callable(tasks) and not isinstance(tasks, Iterable) else tasks
    _refuse_odd_input(tasks)
    if isinstance(tasks, list | tuple):
        return TaskSource(intake.whole(tasks), None, found_by)
    intake.refuse_alike(tasks)
    return TaskSource(None, tasks, found_by)


def _refuse_odd_input(tasks: Any) -> None:
    """Refuse what is no list or source of tasks, with the reason a reader needs.

    Raises:
        ConfigurationError: Always the whole input's fault.
    """
    if isinstance(tasks, str | bytes):
        raise ConfigurationError("tasks: a text is no list of tasks; pass a list of ParallelTask or dicts")
    if (
        isinstance(tasks, Mapping)
        and tasks
        and (
            not tasks.keys() & set(TASK_FIELDS)
            or all(isinstance(each, Mapping | ParallelTask) for each in tasks.values())
        )
    ):
        raise ConfigurationError("tasks: a dict of tasks is not taken; pass a list, each task with its name")
    if isinstance(tasks, Mapping | ParallelTask):
        raise ConfigurationError("tasks: one task must be put in a list: run([task])")
    if not isinstance(tasks, Iterable | AsyncIterable):
        raise ConfigurationError(
            f"tasks: {type(tasks).__name__} is no list of tasks; pass a list of ParallelTask or dicts"
        )

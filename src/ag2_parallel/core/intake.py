"""From tasks as given to what the schedule takes: all at once from a list, one by one from a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ag2_parallel import validation
from ag2_parallel.core import ordering
from ag2_parallel.core.entries import Limits, NewTask
from ag2_parallel.core.judging import judged, judged_beforehand
from ag2_parallel.core.schedule import ScheduledTask
from ag2_parallel.policies import as_retry_policy
from ag2_parallel.results import TaskError
from ag2_parallel.tasks import ParallelTask

if TYPE_CHECKING:
    from ag2_parallel.options import Options
    from ag2_parallel.policies import RetryPolicy
    from ag2_parallel.validation import AgentProblems, Problem


@dataclass(slots=True)
class Intake:
    """Turns tasks into scheduled ones, with the runner's options where a task says nothing."""

    options: Options
    agents: AgentProblems
    _policy: RetryPolicy = field(init=False, repr=False)
    _judged: RetryPolicy = field(init=False, repr=False)
    _limits: Limits = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make once what most tasks share."""
        options = self.options
        self._policy = options.retry_policy
        self._judged = judged_beforehand(self._policy)
        self._limits = Limits(options.timeout, options.attempt_timeout, options.idle_timeout)

    def whole(self, given: Sequence[Any]) -> list[NewTask]:
        """Check a list of tasks.

        Raises:
            ConfigurationError: With every problem of every task.
        """
        problems: list[Problem] = []
        tasks: list[ParallelTask] = []
        seen: dict[str, int] = {}
        for position, item in enumerate(given):
            task, found = self._checked(item, position, seen)
            problems += found
            if task is not None:
                tasks.append(task)
        validation.raise_for(problems)
        exact = {validation.name_key(task.name): task.name for task in tasks}
        wanted = [[exact.get(validation.name_key(name), name) for name in task.depends_on] for task in tasks]
        depends_on = ordering.resolve([task.name for task in tasks], wanted)
        names = frozenset(exact.values())
        for task, dependencies in zip(tasks, wanted, strict=True):
            problems += validation.upstream_problems(task, dependencies, names.__contains__)
        validation.raise_for(problems)
        return [self._new(task, index, depends_on[index]) for index, task in enumerate(tasks)]

    def refuse_alike(self, tasks: Any) -> None:
        """Look at what all tasks of a source have in common, where it says that in an attribute `alike`.

        That is one task for each part of the source, by what people call the part: its tasks differ from that one in
        name and prompt alone.

        Raises:
            ConfigurationError: No task of a part could run.
        """
        alike = getattr(tasks, "alike", None)
        problems: list[Problem] = []
        for part, task in alike.items() if isinstance(alike, Mapping) else ():
            told = f'task "{task.name}": '
            found = validation.task_problems(
                task, 0, has_llm_config=self.options.llm_config is not None, agents=self.agents
            )
            problems += [each._replace(text=f"{part}: {each.text.removeprefix(told)}") for each in found]
        validation.raise_for(problems)

    def _checked(self, item: Any, position: int, seen: dict[str, int]) -> tuple[ParallelTask | None, list[Problem]]:
        task, problems = validation.as_task(item, position)
        if task is None:
            return None, problems
        has_llm_config = self.options.llm_config is not None
        problems = validation.task_problems(task, position, has_llm_config=has_llm_config, agents=self.agents)
        if isinstance(task.name, str):
            duplicate = validation.duplicate_problem(task.name, position, seen)
            problems += [duplicate] if duplicate else []
        return task, problems

    def _new(
        self, task: ParallelTask, index: int, depends_on: tuple[int, ...], problem: TaskError | None = None
    ) -> NewTask:
        policy, judged_policy = self._policy, self._judged
        if task.retry is not None:
            policy = as_retry_policy(task.retry)
            judged_policy = judged_beforehand(policy)
        limits = self._limits_of(task)
        scheduled = ScheduledTask(
            index=index,
            depends_on=depends_on,
            priority=task.priority,
            timeout=limits.timeout,
            attempt_timeout=limits.attempt_timeout,
            idle_timeout=limits.idle_timeout,
            retry=judged_policy,
            problem=problem,
        )
        return NewTask(task, scheduled, limits, partial(judged, judge=policy.on) if callable(policy.on) else None)

    def _limits_of(self, task: ParallelTask) -> Limits:
        common = self._limits
        if task.timeout is None and task.attempt_timeout is None and task.idle_timeout is None:
            return common
        return Limits(
            timeout=common.timeout if task.timeout is None else task.timeout,
            attempt_timeout=common.attempt_timeout if task.attempt_timeout is None else task.attempt_timeout,
            idle_timeout=common.idle_timeout if task.idle_timeout is None else task.idle_timeout,
        )


@dataclass(slots=True)
class LazyIntake:
    """Checks the tasks of a source one by one; a bad one becomes a task that fails at once."""

    intake: Intake
    decide: Callable[[NewTask], NewTask] = lambda new: new
    """What becomes of a task where the run had earlier lives."""
    _seen: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def after(self, listed: Sequence[NewTask]) -> None:
        """Go on behind a list that was checked whole."""
        self._count = len(listed)
        self._seen = {validation.name_key(new.task.name): new.scheduled.index for new in listed}

    def checked(self, item: Any) -> NewTask:
        """The next task, or an error if it cannot run.

        Raises:
            ConfigurationError: With every problem of the task, which is then no part of the run.
        """
        position = self._count
        task, problems = self.intake._checked(item, position, dict(self._seen))  # noqa: SLF001 - two halves of one thing
        if task is not None and not problems:
            _, problems = self._depends_on(task, position)
        validation.raise_for(problems)
        return self.next(item)

    def next(self, item: Any) -> NewTask:
        """The next task of the source."""
        position = self._count
        self._count += 1
        task, problems = self.intake._checked(item, position, self._seen)  # noqa: SLF001 - two halves of one thing
        depends_on: tuple[int, ...] = ()
        if task is not None and not problems:
            depends_on, problems = self._depends_on(task, position)
        if task is not None and not problems:
            return self.decide(self.intake._new(task, position, depends_on))  # noqa: SLF001
        error = TaskError(
            type="ConfigurationError",
            message="\n".join(problem.text for problem in problems),
            kind="configuration",
            retryable=False,
        )
        return self.intake._new(self._stand_in(item, task, position), position, (), error)  # noqa: SLF001

    def _depends_on(self, task: ParallelTask, position: int) -> tuple[tuple[int, ...], list[Problem]]:
        found, problems = [], []
        for name in task.depends_on:
            index = self._seen.get(validation.name_key(name), position)
            if index == position:
                text = f'task "{task.name}": depends_on: no task "{name}" was read before it'
                problems.append(validation.Problem(text))
            else:
                found.append(index)
        key = validation.name_key
        problems += validation.upstream_problems(task, task.depends_on, lambda name: key(name) in self._seen, key)
        return tuple(found), problems

    def _stand_in(self, item: Any, task: ParallelTask | None, position: int) -> ParallelTask:
        """A task with a usable name for what cannot be run."""
        name = item.get("name") if isinstance(item, Mapping) else getattr(task or item, "name", None)
        fit = isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 200
        own = fit and self._seen.setdefault(validation.name_key(str(name)), position) == position
        shown = str(name) if own else f"task number {position + 1}"
        while self._seen.setdefault(validation.name_key(shown), position) != position:
            shown += "'"
        return ParallelTask(shown, metadata=task.metadata if task else None)


def dependants(tasks: Iterable[NewTask]) -> Mapping[int, int]:
    """How many tasks depend on each index."""
    return Counter(index for new in tasks for index in new.scheduled.depends_on)


Prepare = Callable[[ParallelTask], None]
"""Pays a task's one-off costs before it is scheduled; blocking."""

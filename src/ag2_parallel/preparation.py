"""What a task needs before it starts: its problems found, its one-off costs paid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel import validation
from ag2_parallel.cassettes import Replay
from ag2_parallel.errors import NotSerializableError
from ag2_parallel.frameworks.registry import Frameworks
from ag2_parallel.gate.budget import NamedModel, Spending
from ag2_parallel.gate.cassette import open_cassette
from ag2_parallel.place import Place
from ag2_parallel.tasks import learn_task
from ag2_parallel.workers.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.cassette import Cassette
    from ag2_parallel.machinery import Machinery
    from ag2_parallel.options import Options
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.tasks import ParallelTask
    from ag2_parallel.usage import Usage


class Preparation:
    """The frameworks, the resources and the account of one run.

    Attributes:
        frameworks: What runs the agents.
        resources: What all tasks share.
        spending: The run's account, where there is a budget.
        cassette: The run's, once it is open, where there is one.
    """

    def __init__(self, options: Options, redactor: Redactor, exhaust: Callable[[str, bool], None]) -> None:
        """Nothing is imported or opened yet. `exhaust(why, stop)` is told when the budget is used up."""
        self.frameworks = Frameworks(options.llm_config, keyless=isinstance(options.cassette, Replay))
        self.resources = Resources(options.resources, redactor.text)
        self.spending: Spending | None = None
        if options.budget is not None:
            self.spending = Spending(
                options.budget,
                on_reached=lambda why: exhaust(why, False),  # noqa: FBT003 - a message
                on_refused=lambda why: exhaust(why, True),  # noqa: FBT003 - a message
            )
        self.cassette: Cassette | None = None
        self._wanted_cassette = options.cassette
        self._place = Place(options, self.frameworks)
        self._redactor = redactor
        self._opened = False

    def open_cassette(self) -> None:
        """Open the run's cassette, where one is wanted. Blocking.

        Raises:
            ConfigurationError: It cannot be read, or written.
        """
        if self._wanted_cassette is not None:
            self.cassette = open_cassette(self._wanted_cassette, self._redactor)

    def go_on(self) -> None:
        """The run had earlier lives."""
        if self.cassette is not None:
            self.cassette.go_on()

    def already_used(self, usage: Usage) -> None:
        """What results used that the caller has already counts in the run's budget; on the loop."""
        if self.spending is not None and usage.calls + usage.unreported_calls:
            self.spending.add(usage.total_tokens + usage.estimated_tokens, usage.cost or 0.0)

    def forget(self, index: int) -> None:
        """A task is over: its account is closed."""
        if self.spending is not None:
            self.spending.forget(index)

    def close(self) -> None:
        """Close the resources, and write the cassette to its end. Blocking."""
        try:
            self.resources.close()
        finally:
            if self.cassette is not None:
                self.cassette.close()

    def check_options(self) -> None:
        """Refuse options that have to go to another process and cannot.

        Raises:
            NotSerializableError: Names them.
        """
        try:
            self._place.check_options()
        except NotSerializableError as error:
            raise NotSerializableError([self._redactor.text(problem) for problem in error.problems]) from None

    def problems(self, task: ParallelTask) -> list[validation.Problem]:
        """What stands against a task's agent."""
        learn_task(self._redactor, task)
        found = self._place.problems(task) or self.frameworks.problems(task)
        problems = [problem._replace(text=self._redactor.text(problem.text)) for problem in found]
        if self.spending is None or problems:
            return problems
        unpriced = self.spending.problems(NamedModel(*each) for each in self.frameworks.models(task))
        return [validation.Problem(f'task "{task.name}": {text}') for text in unpriced]

    def prepare(self, machinery: Machinery, task: ParallelTask) -> None:
        """Open the resources and import what the task needs, once each; on the feeder's thread."""
        if self._place.prepare(task, machinery):
            return
        if not self._opened:
            self.resources.open()
            if self.spending is not None:
                self.spending.load_prices()
            self._opened = True
        self.frameworks.warm_up_for(task)

    def is_prepared(self, machinery: Machinery, task: ParallelTask) -> bool:
        """Whether `prepare` has nothing to do."""
        return self._place.is_prepared(task, machinery) or (self._opened and self.frameworks.is_warm_for(task))

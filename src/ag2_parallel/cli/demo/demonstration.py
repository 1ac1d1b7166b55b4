"""Run the demonstration from its options to its exit code."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ag2_parallel.cli import exit_codes
from ag2_parallel.cli.demo.figures import figures
from ag2_parallel.cli.demo.lines import agents_of, chosen
from ag2_parallel.cli.demo.models import open_model
from ag2_parallel.cli.demo.reports import make_folder, write_reports
from ag2_parallel.cli.demo.shortfall import shortfall
from ag2_parallel.cli.demo.teams import DISCLAIMER, read_case
from ag2_parallel.errors import RunInterrupted
from ag2_parallel.runner import ParallelAgentRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ag2_parallel.cli.demo.models import DemoModel
    from ag2_parallel.cli.demo.options import DemoOptions
    from ag2_parallel.cli.demo.teams import Case
    from ag2_parallel.cli.termination import Termination
    from ag2_parallel.run_results import RunResults
    from ag2_parallel.tasks import ParallelTask


class Demonstration:
    """The teams on one case, side by side and, if wanted, one after another.

    Args:
        options: What the user asked for.
        say: Takes messages for people.
        termination: Watches for the signal to end.
    """

    def __init__(self, options: DemoOptions, say: Callable[[str], None], termination: Termination) -> None:
        self._options = options
        self._say = say
        self._termination = termination
        self._run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self._folder = options.out or Path(f"demo-output-{self._run_id}")

    def run(self) -> int:
        """Run it, print the table, write the reports; returns the exit code.

        Raises:
            ConfigurationError: If something is missing, or the folder or a report cannot be written.
            RunInterrupted: After Ctrl-C; the reports of what was done are written.
        """
        framework = chosen(self._options.framework)
        together, alone = self._runner(self._options.workers), self._runner(1)
        case = read_case(brief=self._options.real)
        if self._options.real:
            self._say("starting the model on this machine")
        with open_model(self._options, case) as model:
            make_folder(self._folder)
            self._say(f"{case.text.partition(chr(10))[0].removeprefix('# ')}. {DISCLAIMER} {model.told}")
            tasks = case.tasks(agents_of(framework, model))
            self._say("all teams at once:")
            side_by_side = self._side_by_side(together, case, model, tasks)
            one_by_one = None
            if self._options.compares and side_by_side.ok:
                self._say("the same, one after another, to compare:")
                one_by_one = alone.run(tasks, run_id=f"{self._run_id}-one-by-one")
        self._show(case, model, side_by_side, one_by_one)
        all_ok = side_by_side.ok and (one_by_one is None or one_by_one.ok)
        return exit_codes.OK if all_ok else exit_codes.SOME_FAILED

    def _side_by_side(
        self, runner: ParallelAgentRunner, case: Case, model: DemoModel, tasks: Sequence[ParallelTask]
    ) -> RunResults:
        try:
            results = runner.run(tasks, run_id=self._run_id)
        except RunInterrupted as stopped:
            self._write(case, stopped.results, model)
            raise
        self._write(case, results, model)
        return results

    def _runner(self, workers: int | None) -> ParallelAgentRunner:
        return ParallelAgentRunner(
            workers, self._options.timeout, progress=True, observers=[self._termination.on_event]
        )

    def _write(self, case: Case, results: RunResults, model: DemoModel) -> None:
        write_reports(self._folder, case, results, model.told)
        self._say(f"the reports are in {self._folder}/")

    def _show(self, case: Case, model: DemoModel, side_by_side: RunResults, one_by_one: RunResults | None) -> None:
        from ag2_parallel.cli.demo.table import figure_lines, show, usage_line

        titles = case.titles()
        lines = [model.told]
        wrong = shortfall(side_by_side, one_by_one, model.address)
        if wrong is None:
            numbers = figures(side_by_side, one_by_one)
            longest = titles[numbers.longest_name]
            lines += figure_lines(numbers, longest_title=longest, shares_processor=model.shares_processor)
        lines += [usage_line(side_by_side.usage, scripted=model.scripted), f"reports:            {self._folder}/"]
        show(titles, side_by_side, one_by_one, lines if wrong is None else [*lines, wrong])

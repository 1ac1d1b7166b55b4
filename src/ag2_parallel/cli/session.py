"""A run of the command line: from files to results and an exit code."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TextIO

from ag2_parallel.cli import exit_codes
from ag2_parallel.cli.canary import canary, refusal
from ag2_parallel.cli.found_tasks import found
from ag2_parallel.cli.frame import say
from ag2_parallel.cli.output.causes import Causes
from ag2_parallel.cli.output.kept_aside import KeptAside
from ag2_parallel.cli.output.result_rows import SCHEMA_VERSION, result_row
from ag2_parallel.cli.output.standard_output import SHOWN, data_alone, printer
from ag2_parallel.cli.output.writers import JsonLines, writer_for
from ag2_parallel.cli.task_files.plan import read_plan
from ag2_parallel.cli.timeline import refuse_undrawable
from ag2_parallel.core.resuming import ResumePolicy
from ag2_parallel.core.run_names import new_run_id
from ag2_parallel.errors import Ag2ParallelError, ConfigurationError, MissingExtraError, RunFailedError, RunInterrupted
from ag2_parallel.policies import Budget
from ag2_parallel.results import plain
from ag2_parallel.run_results import RunResults
from ag2_parallel.runner import ParallelAgentRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ag2_parallel.cli.output.writers import Writer
    from ag2_parallel.cli.run_settings import RunSettings
    from ag2_parallel.cli.task_files.plan import Plan, RowsWanted
    from ag2_parallel.cli.termination import Termination
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.results import ParallelTaskResult

_REFUSED = "forecast"
"""Why a run ended that was not gone on with after its sample."""

_FAILED_AS_A_WHOLE = frozenset({"source_error", "journal_error", "abandoned_threads"})


def run_files(
    files: Sequence[Path],
    settings: RunSettings,
    termination: Termination,
    rows: RowsWanted | None = None,
    policy: ResumePolicy | None = None,
) -> int:
    """Run what task files say; returns the exit code. `policy` is for a run that the journal has already.

    Raises:
        ConfigurationError: If nothing can be run; nothing was started.
        RunFailedError: If the run as a whole failed.
        RunInterrupted: After Ctrl-C or SIGTERM; what was finished is written.
    """
    for folder in reversed(list(dict.fromkeys(str(path.resolve().parent) for path in files))):
        sys.path.insert(0, folder)  # as Python does for a script: modules beside the file are found
    if settings.timeline is not None:
        refuse_undrawable(settings.timeline)
    with data_alone() as stdout:
        plan = read_plan(files, os.environ, rows)
        options = _options(plan, settings, termination)
        if settings.dry_run:
            from ag2_parallel.cli.dry_run import show

            return show(plan, options, settings.form, stdout)
        session = _Session(plan.redactor, settings, options, stdout)
        try:
            tasks = found(plan.all_tasks(), files, rows, settings)
            return session.run(ParallelAgentRunner(**options), tasks, policy or ResumePolicy())
        except ConfigurationError as error:
            raise plan.located(error) from None


def _options(plan: Plan, settings: RunSettings, termination: Termination) -> dict[str, Any]:
    """The runner's options: the files', then the command line's."""
    options = {**plan.options, **settings.options}
    options["observers"] = [*options.get("observers", ()), termination.on_event]
    if settings.max_cost is not None:
        budget = options.get("budget")
        options["budget"] = Budget(settings.max_cost) if budget is None else replace(budget, max_cost=settings.max_cost)
    options["redact"] = _masking(plan.redactor, options.get("redact"))
    return options


def _masking(redactor: Redactor, users: Callable[[str], str] | None) -> Callable[[str], str]:
    """Masks the environment's keys, after whatever the user's own function does."""
    return redactor.text if users is None else lambda text: redactor.text(users(text))


class _Session:
    """Where results go while a run goes on."""

    def __init__(self, redactor: Redactor, settings: RunSettings, options: Mapping[str, Any], stdout: TextIO) -> None:
        self._stdout = stdout
        self._redactor = redactor
        self._only_succeeded = options.get("handle_errors") == "ignore"
        journal = options.get("journal")
        self._settings = settings
        self._run_id = new_run_id() if settings.run_id is None else settings.run_id
        self._writers: list[Writer] = [printer(settings.form, stdout)]
        if settings.out is not None:
            self._writers.append(writer_for(settings.out, overwrite=settings.overwrite))
        elif journal is None and settings.form == "table":
            self._writers.append(KeptAside(self._run_id, SHOWN, say))
        self._busy: Writer | None = None
        self._failed = 0
        self._causes = Causes()
        self._journal = None if journal is None else os.fspath(getattr(journal, "path", journal))
        self._drawn: list[ParallelTaskResult] = []
        self._undrawn = False

    def run(self, runner: ParallelAgentRunner, tasks: Iterable[Any], policy: ResumePolicy) -> int:
        """Run the tasks; every result is written as it is there, whatever becomes of the run."""
        try:
            with runner if self._settings.canary is not None else nullcontext():
                results = self._results(runner, tasks, policy)
        except RunFailedError as error:
            self._close(error.results)
            if error.results.stop_reason != "fail_fast":
                raise
            say("stopped at the first failure")
            return exit_codes.SOME_FAILED
        except RunInterrupted as error:
            self._close(error.results)
            raise
        self._close(results)
        if results.stop_reason == _REFUSED:
            return exit_codes.USAGE
        if results.stop_reason in _FAILED_AS_A_WHOLE or self._undrawn:
            return exit_codes.RUN_FAILED
        return exit_codes.OK if not self._failed and results.stop_reason is None else exit_codes.SOME_FAILED

    def _results(self, runner: ParallelAgentRunner, tasks: Iterable[Any], policy: ResumePolicy) -> RunResults:
        known: Mapping[str, ParallelTaskResult] = {}
        if self._settings.canary is not None:
            try:
                told = canary(runner, tasks, self._settings, self._run_id)
            except (RunFailedError, RunInterrupted) as error:
                self._take_all(error.results)
                raise
            how = self._how_to_resume(tasks)
            tasks, known = told.tasks, told.forecast.results
            try:
                why = refusal(told.forecast, self._settings)
            except KeyboardInterrupt as error:
                self._take_all(known)
                raise RunInterrupted("interrupted", self._sample(known, "interrupted"), how) from error
            if why is not None:
                self._take_all(known)
                say(f"{why}; " + (f"the sample is kept: {how}" if how else "with --journal the sample would be kept"))
                return self._sample(known, _REFUSED)
        return runner.deliver(tasks, self._take, run_id=self._run_id, known=known, **asdict(policy))

    def _how_to_resume(self, tasks: Iterable[Any]) -> str | None:
        if self._journal is None:
            return None
        if "file" not in (getattr(tasks, "found_by", None) or {}):
            return f"the same command with --run-id {shlex.quote(self._run_id)}"
        return shlex.join(["ag2-parallel", "resume", self._journal, self._run_id])

    def _sample(self, known: Mapping[str, ParallelTaskResult], stop_reason: str) -> RunResults:
        return RunResults(list(known.values()), run_id=self._run_id, stop_reason=stop_reason)

    def _take_all(self, results: Mapping[str, ParallelTaskResult]) -> None:
        for result in results.values():
            self._take(result)

    def _take(self, result: ParallelTaskResult) -> None:
        self._failed += not result.ok
        self._causes.take(result)
        if self._settings.timeline is not None:
            self._drawn.append(result)
        if not result.ok and self._only_succeeded:
            return
        row = result_row(result, self._run_id, transcripts=self._settings.transcripts)
        row["metadata"] = self._redactor.value(row["metadata"])
        try:
            for writer in self._writers:
                self._busy = writer
                writer.write(row)
        except BrokenPipeError as error:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), self._stdout.fileno()
            )  # or Python complains of it at its exit, too
            raise Ag2ParallelError("standard output was closed; the run was stopped") from error
        except OSError as error:
            raise Ag2ParallelError(f"results cannot be written: {error}; the run was stopped") from error
        finally:
            self._busy = None

    def _close(self, results: RunResults) -> None:
        summary = {
            "schema_version": SCHEMA_VERSION,
            "run_id": self._run_id,
            "stop_reason": results.stop_reason,
            "metrics": plain(results.metrics),
        }
        for writer in self._writers:
            if (
                writer is self._busy
            ):  # the run was interrupted while nobody reads what it writes to, such as a full pipe
                continue
            writer.close(summary)
            if isinstance(writer, JsonLines) and writer.repaired:
                say(f"{self._settings.out} ended in half a line of {writer.repaired} bytes, which was cut off")
        common = self._causes.told()
        if common is not None:
            say(common)
        if self._settings.timeline is not None:
            self._draw(self._settings.timeline, results)

    def _draw(self, path: Path, results: RunResults) -> None:
        drawn = RunResults(self._drawn, run_id=self._run_id, stop_reason=results.stop_reason, metrics=results.metrics)
        try:
            say(f"{drawn.timeline(path)}: {drawn!r}")
        except (OSError, MissingExtraError) as error:
            self._undrawn = True
            say(f"--timeline {path}: it cannot be written: {error}")

"""`--dry-run`: what would be run, with every problem, without a model call."""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from ag2_parallel.cli import exit_codes
from ag2_parallel.cli.frame import say
from ag2_parallel.cli.output.standard_output import short
from ag2_parallel.cli.remembered import Remembered, told
from ag2_parallel.cli.task_files.teams import TeamFactory
from ag2_parallel.core.intake import Intake, LazyIntake
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.options import Options
from ag2_parallel.preparation import Preparation
from ag2_parallel.redaction import Redactor, masked_config
from ag2_parallel.reporting.words import many_tasks
from ag2_parallel.results import plain
from ag2_parallel.tasks import Template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ag2_parallel.cli.run_settings import Format
    from ag2_parallel.cli.task_files.plan import Plan
    from ag2_parallel.core.entries import NewTask
    from ag2_parallel.tasks import ParallelTask

_SHOWN: Final = 100
"""Tasks that are listed; of more, the rest is counted. All are checked."""

_OURS: Final = frozenset({"observers", "redact"})
"""Options that the command line adds to."""


def show(plan: Plan, given: dict[str, Any], form: Format, stdout: TextIO) -> int:
    """Check all tasks and print them on `stdout`, in the order in which they would start; returns the exit code.

    Raises:
        ConfigurationError: With every problem of the options, and of the tasks that the files list.
    """
    options = Options.of(given)
    preparation = Preparation(options, Redactor(options.redact), lambda _why, _stop: None)
    preparation.check_options()
    intake = Intake(options, preparation.problems)
    intake.refuse_alike(plan.all_tasks())
    listed = _listed(plan, intake)
    shown = [_line(new, plan.redactor) for new in in_order(listed)[:_SHOWN]]
    count, bad = len(listed), 0
    remembered = Remembered(options)
    for new in listed:
        remembered.count(new.task.name)
    lazy = LazyIntake(intake)
    lazy.after(listed)
    for source in plan.sources:
        for item in source:
            new = lazy.next(item)
            count += 1
            remembered.count(new.task.name)
            if new.scheduled.problem is not None:
                bad += 1
                say(f"error: {plan.redactor.text(new.scheduled.problem.message)}")
            elif len(shown) < _SHOWN:
                shown.append(_line(new, plan.redactor))
    workers = options.workers_for(None if plan.sources else count)
    settings = plan.redactor.value(plain(masked_config(_said(given))))
    found = {"count": count, "max_workers": workers, "forecast": remembered.forecast(workers), "options": settings}
    _print(found | {"tasks": plan.redactor.value(shown)}, form, stdout)
    return exit_codes.USAGE if bad else exit_codes.OK


def _listed(plan: Plan, intake: Intake) -> list[NewTask]:
    try:
        return intake.whole(plan.tasks)
    except ConfigurationError as error:
        raise plan.located(error) from None


def in_order(tasks: Sequence[NewTask]) -> list[NewTask]:
    """Tasks in the order in which one worker would start them: higher priority first, after what they depend on."""
    waiting = {new.scheduled.index: len(new.scheduled.depends_on) for new in tasks}
    dependants: dict[int, list[NewTask]] = {}
    for new in tasks:
        for index in new.scheduled.depends_on:
            dependants.setdefault(index, []).append(new)
    by_index = {new.scheduled.index: new for new in tasks}
    ready = [(-new.task.priority, new.scheduled.index) for new in tasks if not new.scheduled.depends_on]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, index = heapq.heappop(ready)
        ordered.append(by_index[index])
        for new in dependants.get(index, ()):
            waiting[new.scheduled.index] -= 1
            if not waiting[new.scheduled.index]:
                heapq.heappush(ready, (-new.task.priority, new.scheduled.index))
    return ordered


def _line(new: NewTask, redactor: Redactor) -> dict[str, Any]:
    """A task in short; its `timeout` is the one that holds, the runner's where it has none of its own."""
    task = new.task
    prompt = task.prompt.text if isinstance(task.prompt, Template) else task.prompt
    return {
        "name": task.name,
        "agent": _agent(task),
        "prompt": short(redactor.text(prompt if isinstance(prompt, str) else short(prompt, 10_000)), 80),
        "depends_on": list(task.depends_on),
        "timeout": new.limits.timeout,
        "priority": task.priority,
    }


def _agent(task: ParallelTask) -> str:
    """What runs the task, in a word."""
    if task.agent_config is not None:
        return str(task.agent_config.get("name") or task.agent_config.get("type") or "agent")
    what = task.agent if task.agent is not None else task.run
    if what is None:
        return "assistant"
    return f"{what.pattern}: {', '.join(what.members)}" if isinstance(what, TeamFactory) else str(what)


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _OURS}


def _print(found: dict[str, Any], form: Format, stdout: TextIO) -> None:
    if form == "json":
        typer.echo(json.dumps(found, indent=2), file=stdout)
        return
    if form == "jsonl":
        for line in found["tasks"]:
            typer.echo(json.dumps(line), file=stdout)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in ("task", "agent", "prompt", "after", "timeout"):
        table.add_column(heading, overflow="fold")
    for line in found["tasks"]:
        limit = "none" if line["timeout"] is None else f"{line['timeout']:g} s"
        cells = (line["name"], line["agent"], line["prompt"], ", ".join(line["depends_on"]), limit)
        table.add_row(*(Text(short(cell)) for cell in cells))
    console = Console(file=stdout, highlight=False)
    console.print(table)
    more = found["count"] - len(found["tasks"])
    counted = many_tasks(found["count"]) + (f", {more} of them not shown" if more else "")
    console.print(Text(f"{counted}; {found['max_workers']} at once; no model was called"))
    if found["forecast"] is not None:
        console.print(Text(told(found["forecast"])))
    for name, value in found["options"].items():
        console.print(Text(f"{name}: {short(value, 500)}"))

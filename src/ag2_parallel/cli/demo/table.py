"""The table of results and the figures, on standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ag2_parallel.cli.demo.figures import Figures
    from ag2_parallel.run_results import RunResults
    from ag2_parallel.usage import Usage


def show(
    titles: Mapping[str, str], side_by_side: RunResults, one_by_one: RunResults | None, lines: Sequence[str]
) -> None:
    """Print the table of the tasks and, below it, lines of text."""
    console = Console(highlight=False)
    table = Table()
    for heading in ("task", "status"):
        table.add_column(heading)
    for heading in ("one by one", "parallel", "calls", "tokens"):
        table.add_column(heading, justify="right")
    for name, title in titles.items():
        result = side_by_side[name]
        alone = f"{one_by_one[name].duration:.2f} s" if one_by_one else "-"
        usage = result.usage
        table.add_row(
            title, str(result.status), alone, f"{result.duration:.2f} s", f"{usage.calls}", f"{usage.total_tokens}"
        )
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)


def figure_lines(figures: Figures, *, longest_title: str, shares_processor: bool) -> list[str]:
    """The times in words, one a line."""
    alone, reduction = _comparison(figures, shares_processor=shares_processor)
    return [
        f"one after another:  {alone}",
        f"in parallel:        {figures.parallel:.2f} s (from the start of the first task to the end of the last)",
        f"reduction:          {reduction}",
        f"longest team:       {figures.longest:.2f} s ({longest_title})",
        (
            f"lower bound:        {figures.bound:.2f} s (longest team, then the assessment); "
            f"the parallel time is {figures.over_bound:.2f} times that"
        ),
        f"set-up before the first task: {figures.setup:.1f} s, not counted",
    ]


def usage_line(usage: Usage, *, scripted: bool) -> str:
    """Tokens, calls and cost in words."""
    if scripted:
        cost = "no cost: scripted answers"
    else:
        cost = "cost: unknown" if usage.cost is None else f"cost: {usage.cost:.4f} US dollars"
    return (
        f"tokens:             {usage.prompt_tokens} sent, {usage.completion_tokens} generated "
        f"in {usage.calls} model calls; {cost}"
    )


def _comparison(figures: Figures, *, shares_processor: bool) -> tuple[str, str]:
    """The time one after another, and the reduction: measured, estimated, or said to be unknown."""
    if figures.one_by_one is not None:
        return f"{figures.one_by_one:.2f} s (measured: the same tasks with one worker)", f"{figures.reduction:.1f} %"
    if shares_processor:  # each task was slowed down by the others, so the sum of their times would flatter
        return "not measured; --compare measures it", "not measured"
    told = f"about {figures.task_seconds:.2f} s (sum of the tasks' times side by side; --compare measures it)"
    return told, f"about {figures.reduction:.1f} %"

"""The table of results and the figures, on standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.cli.demo.figures import Figures
    from ag2_parallel.run_results import RunResults
    from ag2_parallel.usage import Usage


def show(
    titles: Mapping[str, str], side_by_side: RunResults, one_by_one: RunResults | None, usage_lines: list[str]
) -> None:
    """Print the table of the tasks and, below it, lines of figures."""
    console = Console(highlight=False)
    table = Table()
    for heading in ("task", "status"):
        table.add_column(heading)
    for heading in ("one by one", "parallel", "model calls", "tokens"):
        table.add_column(heading, justify="right")
    for name, title in titles.items():
        result = side_by_side[name]
        alone = f"{one_by_one[name].duration:.2f} s" if one_by_one else "-"
        usage = result.usage
        table.add_row(
            title, str(result.status), alone, f"{result.duration:.2f} s", f"{usage.calls}", f"{usage.total_tokens}"
        )
    console.print(table)
    for line in usage_lines:
        console.print(line, soft_wrap=True, markup=False)


def figure_lines(figures: Figures, usage: Usage, *, longest_title: str, shares_processor: bool) -> list[str]:
    """The figures in words, one a line."""
    estimate = (
        "sum of the tasks' times, which shared one processor: alone each would be faster"
        if shares_processor
        else "sum of the tasks' times side by side; --compare measures it"
    )
    how = "measured: the same tasks with one worker" if figures.measured else estimate
    cost = "unknown price" if usage.cost is None else f"{usage.cost:.4f} US dollars"
    return [
        f"one after another:  {figures.one_by_one:.2f} s ({how})",
        f"in parallel:        {figures.parallel:.2f} s (from the start of the first task to the end of the last)",
        f"reduction:          {figures.reduction:.1f} %" + ("" if figures.measured else " (estimated)"),
        f"longest team:       {figures.longest:.2f} s ({longest_title})",
        f"lower bound:        {figures.bound:.2f} s (longest team, then the assessment); "
        f"the parallel time is {figures.over_bound:.2f} times that",
        f"tokens:             {usage.prompt_tokens} sent, {usage.completion_tokens} generated in {usage.calls} model calls, {cost}",
    ]

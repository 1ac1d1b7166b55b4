"""Medians, ratios and verdicts as plain text."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison import Comparison, Load, Measures

Rounds: TypeAlias = "Mapping[str, Sequence[Measures]]"
"""The measures of all rounds, by side."""

COLUMNS: Final = {
    "wall": ("wall", 1.0, ".3f", "s"),
    "cpu": ("CPU", 1.0, ".3f", "s"),
    "cpu_per_task": ("CPU a task", 1e3, ".3f", "ms"),
    "cpu_per_call": ("CPU a call", 1e3, ".3f", "ms"),
    "rss": ("peak RSS", 1.0, ".0f", "MB"),
    "rss_before": ("of it before the work", 1.0, ".0f", "MB"),
    "calls_per_task": ("calls a task", 1.0, ".2f", ""),
    "modules": ("modules", 1.0, ".0f", ""),
    "heavy": ("of them heavy", 1.0, ".0f", ""),
}
"""Each measure's heading, factor, format and unit."""


def heading(name: str, comparison: Comparison, load: Load, rounds: int) -> str:
    """What is measured here, and at what size."""
    latency = "" if load.latency is None else f", answers after {load.latency:g} s"
    size = f"{load.tasks} tasks, {load.workers} at once{latency}, {rounds} round{'s' if rounds > 1 else ''}"
    return f"{name}: {comparison.title}\n{size}"


def sides_table(comparison: Comparison, rounds: Rounds) -> str:
    """A row for each side: medians, with the least and the greatest in brackets."""
    rows = [["", *(COLUMNS[column][0] for column in comparison.columns)]]
    for label, measures in rounds.items():
        rows.append([label, *(_spread(column, [each[column] for each in measures]) for column in comparison.columns)])
    return aligned(rows)


def verdicts(comparison: Comparison, rounds: Rounds) -> list[dict[str, Any]]:
    """What came of each requirement, and the ratios that are only shown."""
    found = []
    for required in comparison.requirements:
        value = _of(rounds, required.side, required.measure, required.beside)
        found.append(
            {
                "side": required.side,
                "measure": required.measure,
                "beside": required.beside,
                "value": value,
                "at_most": required.at_most,
                "holds": value <= required.at_most,
            }
        )
    for side, measure, beside in comparison.shown_ratios:
        value = _of(rounds, side, measure, beside)
        found.append(
            {"side": side, "measure": measure, "beside": beside, "value": value, "at_most": None, "holds": None}
        )
    return found


def verdicts_table(found: Sequence[Mapping[str, Any]]) -> str:
    """A row for each verdict."""
    rows = [["measure", "of", "beside", "measured", "required", ""]]
    for each in found:
        name, factor, shape, unit = COLUMNS[each["measure"]]
        if each["beside"] is not None:
            factor, shape, unit = 1.0, ".2f", "x"
        required = "" if each["at_most"] is None else f"at most {each['at_most'] * factor:{shape}} {unit}"
        verdict = {True: "holds", False: "falls short", None: "for information"}[each["holds"]]
        measured = f"{each['value'] * factor:{shape}} {unit}"
        rows.append([name, each["side"], each["beside"] or "-", measured, required, verdict])
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width, a rule below the first row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def _spread(column: str, values: Sequence[float]) -> str:
    _, factor, shape, unit = COLUMNS[column]
    middle, least, greatest = (f"{value * factor:{shape}}" for value in (median(values), min(values), max(values)))
    return f"{middle} {unit}".strip() + (f" ({least}-{greatest})" if least != greatest else "")


def _of(rounds: Rounds, side: str, measure: str, beside: str | None) -> float:
    value = median(each[measure] for each in rounds[side])
    return value if beside is None else value / median(each[measure] for each in rounds[beside])

"""Runs the comparisons and prints their tables.

    python benchmarks/run_all.py [--quick] [--only NAME ...] [--rounds 5] [--json FILE]

The exit code is 0 whatever the figures are, and 1 only if a side could not be measured.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fresh_process
import tables
from measure_side import raise_descriptor_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison import Comparison, Load, Measures

NEEDS = {
    "single_agents": "autogen",
    "group_chats": "autogen",
    "many_workers": "autogen",
    "ag2_agents": "ag2",
    "ag2_many_workers": "ag2",
    "no_op_tasks": None,
    "journal": None,
    "import_time": None,
    "http_door": "autogen",
    "processes": "autogen",
    "process_teams": "autogen",
}
"""The comparisons, and the line of AG2 that each needs."""

NAMES = tuple(NEEDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    options = _options(arguments)
    raise_descriptor_limit()  # the servers inherit it
    machine = _machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    report: dict[str, Any] = {"machine": machine, "quick": options.quick, "comparisons": {}}
    failures: list[str] = []
    for name in options.only or _possible():
        try:
            report["comparisons"][name] = _compared(name, quick=options.quick, rounds=options.rounds)
        except fresh_process.SideFailedError as error:
            failures.append(str(error))
            print(f"\nnot measured: {error}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    _print_summary(report["comparisons"])
    return 1 if failures else 0


def _possible() -> list[str]:
    """The comparisons whose line of AG2 is installed; the others are named."""
    missing = [name for name, needed in NEEDS.items() if needed and find_spec(needed) is None]
    if missing:
        print(f"left out, because its line of AG2 is not installed: {', '.join(missing)}")
    return [name for name in NAMES if name not in missing]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round at a small size: to see that it runs")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=_at_least_one, default=5, help="rounds of each side (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure of every round there")
    return parser.parse_args(arguments)


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _machine() -> dict[str, Any]:
    return {
        "Python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": f"{os.getloadavg()[0]:.1f}",
        "system": platform.platform(),
    }


def _compared(name: str, *, quick: bool, rounds: int) -> dict[str, Any]:
    """Measure the sides in turn, round after round, and print what came of it."""
    comparison: Comparison = importlib.import_module(name).COMPARISON
    load = comparison.quick if quick else comparison.load
    count = 1 if quick else comparison.rounds or rounds
    print(f"\n{tables.heading(name, comparison, load, count)}", flush=True)
    started = time.perf_counter()
    measured: dict[str, list[Measures]] = {label: [] for label in comparison.sides}
    for _ in range(count):
        for label, measures in measured.items():
            measures.append(_measure(name, label, comparison, load))
    _check_same_work(name, measured)
    found = tables.verdicts(comparison, measured)
    print(f"\n{tables.sides_table(comparison, measured)}\n")
    if found:
        print(f"{tables.verdicts_table(found)}\n")
    print(f"({time.perf_counter() - started:.0f} s)", flush=True)
    return {"title": comparison.title, "sides": measured, "verdicts": found}


def _measure(name: str, label: str, comparison: Comparison, load: Load) -> Measures:
    if comparison.measure is not None:
        return comparison.measure(label)
    return fresh_process.measure(name, label, load)


def _check_same_work(name: str, measured: dict[str, list[Measures]]) -> None:
    """Sides are only beside each other if the server saw the same number of calls from each."""
    calls = {label: {each.get("calls_per_task") for each in rounds} for label, rounds in measured.items()}
    if len(set().union(*calls.values())) > 1:
        raise fresh_process.SideFailedError(f"{name}: the sides made different numbers of calls a task: {calls}")


def _print_summary(comparisons: dict[str, Any]) -> None:
    required = [each for result in comparisons.values() for each in result["verdicts"] if each["holds"] is not None]
    held = sum(each["holds"] for each in required)
    print(f"\n{held} of {len(required)} requirements hold")


if __name__ == "__main__":
    sys.exit(main())

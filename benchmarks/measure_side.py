"""Measures one side of one comparison in this process, which was started for nothing else.

    python benchmarks/measure_side.py COMPARISON SIDE --load JSON --into FILE

Imports and the warm-up come before the clock. CPU is user and system time of this process alone;
the model server has a process of its own. The measures go into a file, because AG2 prints.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from comparison import Load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comparison import Comparison, Measures

_MAXRSS_PER_MB = 2**20 if sys.platform == "darwin" else 2**10


def raise_descriptor_limit() -> None:
    """Allow as many open sockets as the system lets us: a thousand workers may have one each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def measured(run: Callable[[int], int], load: Load) -> Measures:
    """Warm up, then do the work under the clock.

    Raises:
        RuntimeError: If not every task was answered: such a figure would say nothing.
    """
    if load.warm_up:
        _complete(run, load.warm_up)
    gc.collect()
    rss_before = _peak_rss()
    cpu, wall = time.process_time(), time.perf_counter()
    answered = run(load.tasks)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    _check(answered, load.tasks)
    return {
        "wall": wall,
        "cpu": cpu,
        "cpu_per_task": cpu / load.tasks,
        "rss": _peak_rss(),
        "rss_before": rss_before,
    }


def _complete(run: Callable[[int], int], tasks: int) -> None:
    _check(run(tasks), tasks)


def _check(answered: int, tasks: int) -> None:
    if answered != tasks:
        raise RuntimeError(f"only {answered} of {tasks} tasks were answered; the figure would say nothing")


def _peak_rss() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MAXRSS_PER_MB


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the side named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison")
    parser.add_argument("side")
    parser.add_argument("--load", required=True)
    parser.add_argument("--into", required=True, type=Path)
    options = parser.parse_args(arguments)
    comparison: Comparison = importlib.import_module(options.comparison).COMPARISON
    side = comparison.sides[options.side]
    if side is None:
        parser.error(f'"{options.side}" of {options.comparison} is not measured in this way')
    load = Load(**json.loads(options.load))
    raise_descriptor_limit()
    measures = measured(side(load), load)
    options.into.write_text(json.dumps(measures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

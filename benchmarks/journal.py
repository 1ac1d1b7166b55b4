"""What it costs to write results down: tasks that return 20 KB of text, with a journal beside none."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comparison import Comparison, Load, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS = [
    "the",
    "patient",
    "reports",
    "a",
    "persistent",
    "cough",
    "with",
    "fever",
    "and",
    "was",
    "treated",
    "for",
    "seven",
    "days",
    "without",
    "relief;",
    "blood",
    "pressure",
    "120",
    "over",
    "80,",
    "temperature",
    "38.5,",
    "no",
    "known",
    "allergies,",
    "follow-up",
    "in",
    "two",
    "weeks:",
    "consider",
    "imaging",
    "(chest)",
    "or",
    "referral",
]


def transcript(index: int) -> list[dict[str, str]]:
    """Ten messages of about 2,000 characters, like prose and different for each task."""
    chosen = random.Random(index).choices(_WORDS, k=330)
    return [{"role": "assistant", "content": " ".join(chosen[number:] + chosen[:number])} for number in range(10)]


def answering(ctx: Any) -> list[dict[str, str]]:
    """A result of the size that a team's chat has; what it says is made before the clock starts."""
    return _ANSWERS[ctx.index % len(_ANSWERS)]


_ANSWERS = [transcript(index) for index in range(500)]


def with_options(load: Load, **options: Any) -> Callable[[int], int]:
    """`run=` tasks; making and checking them is inside the clock."""
    from ag2_parallel import ParallelAgentRunner, ParallelTask

    def run(tasks: int) -> int:
        made = ParallelAgentRunner(max_workers=load.workers, progress=False, **options)
        return len(made.run([ParallelTask(f"task-{number}", run=answering) for number in range(tasks)]).succeeded)

    return run


def with_journal(load: Load) -> Callable[[int], int]:
    """A new file for each run, deleted at the end."""

    def run(tasks: int) -> int:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            return with_options(load, journal=Path(folder) / "runs.db")(tasks)

    return run


COMPARISON = Comparison(
    title="no journal beside a journal on the disk of the working folder, results of 20 KB",
    sides={"no journal": with_options, "journal": with_journal},
    load=Load(tasks=10_000, workers=8),
    quick=Load(tasks=200, workers=8),
    requirements=(Requirement("journal", "wall", 5.0), Requirement("journal", "cpu_per_task", 1e-3)),
    shown_ratios=(("journal", "wall", "no journal"), ("journal", "cpu", "no journal")),
)

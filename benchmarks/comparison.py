"""What a comparison is: sides that do the same work, the work's size, and what has to hold between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Measures: TypeAlias = "dict[str, float]"
"""What one run of a side came to, by the names in `tables.COLUMNS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The size of the work.

    Attributes:
        tasks: How many tasks are measured.
        workers: How many run at once.
        latency: Seconds before each answer of the model server; None: no server is needed.
        warm_up: Tasks done before the clock starts, in the same way as the measured ones.
        base_url: Where the model server is; filled in when it runs.
    """

    tasks: int
    workers: int
    latency: float | None = None
    warm_up: int = 3
    base_url: str = ""


Side: TypeAlias = "Callable[[Load], Callable[[int], int]]"
"""Imports what it needs and returns a function that does that many tasks and says how many were answered."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A limit on a median.

    Attributes:
        side: Whose measure it is.
        measure: Which one.
        at_most: The limit.
        beside: The side it is divided by; None: the limit is absolute.
    """

    side: str
    measure: str
    at_most: float
    beside: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Sides measured beside each other.

    Attributes:
        title: One line that says what is compared.
        sides: What is measured, by its label; run in this order, round after round. None where `measure` knows the label.
        load: The full size.
        quick: A small one, to see that it runs.
        columns: The measures that are shown.
        requirements: What has to hold.
        shown_ratios: Ratios that are shown without a limit: `(side, measure, beside)`.
        rounds: Rounds at full size, where it is not for the command line to say.
        measure: Measures a side, where that is not for `measure_side.py` to do.
    """

    title: str
    sides: Mapping[str, Side | None]
    load: Load
    quick: Load
    columns: Sequence[str] = ("wall", "cpu", "cpu_per_task", "rss")
    requirements: Sequence[Requirement] = ()
    shown_ratios: Sequence[tuple[str, str, str]] = ()
    rounds: int | None = None
    measure: Callable[[str], Measures] | None = None

"""What most failures of a run have in common, said once at its end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ag2_parallel.cli.output.standard_output import short

if TYPE_CHECKING:
    from ag2_parallel.results import ParallelTaskResult, TaskError

_ALIKE = 3
"""Failures from which one cause is worth a line of its own."""


class Causes:
    """Counts failures by their cause."""

    def __init__(self) -> None:
        """None yet."""
        self._counts: Counter[tuple[str, str, int | None]] = Counter()
        self._first: dict[tuple[str, str, int | None], TaskError] = {}

    def take(self, result: ParallelTaskResult) -> None:
        """Note a result."""
        error = result.error
        if error is not None and result.started_at is not None:
            cause = (error.kind, error.type, error.status_code)
            self._counts[cause] += 1
            self._first.setdefault(cause, error)

    def told(self) -> str | None:
        """The commonest cause with an example; None where there are few failures, or each has its own."""
        if not self._counts:
            return None
        (cause, count), failed = self._counts.most_common(1)[0], self._counts.total()
        if count < _ALIKE or count * 2 < failed:
            return None
        example = self._first[cause]
        return f"{count:,} of {failed:,} failures are alike ({example.kind}), such as: {short(example.message, 300)}"

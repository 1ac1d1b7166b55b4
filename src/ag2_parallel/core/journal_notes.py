"""The events that a journal keeps beside results, attempts and model calls: what is out of the ordinary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ag2_parallel import events

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.records import RunJournal

KEPT_EVENTS: Final[frozenset[type[events.Event]]] = frozenset({
    events.RunStarted, events.RunStopping, events.RunFinished, events.RunHint, events.RunWarning,
    events.TaskRetrying, events.TaskReported,
    events.ModelCallRetrying, events.ModelCallThrottled, events.ModelCallHedged, events.ModelCallRefused,
    events.ModelCallCut,
})  # fmt: skip
"""Attempts, results and calls have tables of their own, so an ordinary task adds none."""


class JournalNotes:
    """An observer that writes events down.

    Attributes:
        wants: The events it keeps.
    """

    wants = KEPT_EVENTS

    def __init__(self, journal: Callable[[], RunJournal | None]) -> None:
        """`journal` gives the run's journal once it is open."""
        self._journal = journal

    def __call__(self, event: events.Event) -> None:
        """Take one event."""
        journal = self._journal()
        if journal is not None and type(event) in self.wants:
            journal.note(event)

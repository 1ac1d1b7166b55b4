"""Which progress a run shows: live on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

from ag2_parallel.reporting.log_lines import ProgressLines
from ag2_parallel.reporting.terminal import is_terminal

if TYPE_CHECKING:
    from ag2_parallel.events import Event
    from ag2_parallel.ports import Observer
    from ag2_parallel.reporting.live_display import LiveDisplay


class Progress:
    """The progress of one run, from before its start to its end; its own observer.

    Attributes:
        observers: What is to be told of the run's events: itself, or nothing where no progress is wanted.
        wants: The events it needs.
    """

    def __init__(self, wanted: bool | str, *, asks: bool) -> None:  # noqa: FBT001 - the runner's option as it is
        """Nothing is shown yet.

        Args:
            wanted: The runner's `progress` option.
            asks: Whether tasks may ask a person: then nothing is drawn over the question on a terminal.
        """
        self._lines = ProgressLines()
        self._live = None if wanted is False else _live(asks=asks)
        self._shown: Observer = self._lines
        self.wants = self._lines.wants if self._live is None else self._lines.wants | self._live.wants
        self.observers: list[Observer] = [] if wanted is False else [self]

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._shown(event)

    def __enter__(self) -> Self:
        """The run starts; in the thread of its caller."""
        if self._live is not None and self._live.open():
            self._shown = self._live
        return self

    def __exit__(self, *_: object) -> None:
        """The run is over, and everybody was told."""
        if self._live is not None:
            self._live.close()


def _live(*, asks: bool) -> LiveDisplay | None:
    if _in_a_notebook():
        from ag2_parallel.reporting.live_display import LiveDisplay
        from ag2_parallel.reporting.notebook_table import NotebookTable

        return LiveDisplay(NotebookTable())
    if asks or not is_terminal(sys.stderr):
        return None
    from ag2_parallel.reporting.live_display import terminal_display

    return terminal_display()


def _in_a_notebook() -> bool:
    """Whether a kernel runs this code, so that what is displayed reaches a browser. Imports nothing."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or "ipykernel" not in sys.modules:
        return False
    shell = ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"

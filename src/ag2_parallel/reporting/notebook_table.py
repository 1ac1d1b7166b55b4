"""Progress as a table under a notebook's cell that changes while the run goes on."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.redaction import masked_text
from ag2_parallel.reporting import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.reporting.run_view import RunView

_MOST_ROWS: Final = 10
_BETWEEN: Final = 0.5
"""Seconds between two updates: each is a message to the browser and is kept in the notebook."""


class NotebookTable:
    """A display of IPython that is updated in place."""

    def __init__(self) -> None:
        """Nothing is shown yet."""
        self._handle: Any = None
        self._drawn = 0.0
        self._shown = ""
        self._notes: list[str] = []

    def open(self) -> bool:
        """Make the place of the table, in the cell that runs now."""
        from IPython.display import HTML, display

        self._handle = display(HTML("<p>starting …</p>"), display_id=True)
        return self._handle is not None

    def picture(self, view: RunView, now: float, *, last: bool) -> Callable[[], None]:
        """The state, if it is time."""
        if not last and now - self._drawn < _BETWEEN:
            return lambda: None
        self._drawn = now
        self._notes, view.notes = [*self._notes, *view.notes][:_MOST_ROWS], []
        shown = table(view, now, self._notes)
        return lambda: self._show(shown)

    def leave(self) -> None:
        """The table stays as it is."""

    def _show(self, shown: str) -> None:
        from IPython.display import HTML

        if shown != self._shown:
            self._shown = shown
            self._handle.update(HTML(shown))


def table(view: RunView, now: float, notes: list[str]) -> str:
    """The state as HTML: the whole run in a line, and some running tasks."""
    total = view.total
    share = min(view.done / total, 1) * 100 if total else (100 if view.finished else 0)
    colour = "#c2352d" if view.finished and view.bad else "#227a4f" if view.finished else "#4a86c8"
    told = [f"<b>{view.done:,}{f' of {total:,}' if total is not None else ''} tasks</b>"]
    told += [f"{count:,} {escape(status.replace('_', ' '))}" for status, count in view.counts.items()]
    if view.kept:
        told.append(f"{view.kept:,} kept")
    told.append(words.clock(now - view.started))
    remaining = view.remaining(now)
    if remaining is not None and not view.finished:
        told.append(f"about {words.clock(remaining)} left")
    if view.tokens:
        told.append(words.tokens(view.tokens))
    if view.cost:
        told.append(words.dollars(view.cost))
    running = list(view.running.values())
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(masked_text(task.name[:80]))}</td><td>{words.clock(now - task.since)}</td>'
        f'<td style="text-align:left;opacity:.7">{escape(masked_text(task.step(now)[:120]))}</td></tr>'
        for task in running[:_MOST_ROWS]
    )
    more = f"<p>and {len(running) - _MOST_ROWS:,} more</p>" if len(running) > _MOST_ROWS else ""
    said = "".join(f"<p>{escape(masked_text(note[:400]))}</p>" for note in notes)
    return (
        f'<div style="max-width:640px"><p style="margin:0;font-variant-numeric:tabular-nums">{" · ".join(told)}</p>'
        f'<div role="progressbar" aria-valuenow="{share:.0f}" aria-valuemin="0" aria-valuemax="100" '
        f'style="height:6px;margin:4px 0 8px;border-radius:3px;background:rgba(128,128,128,.25)">'
        f'<div style="height:6px;border-radius:3px;width:{share:.1f}%;background:{colour}"></div></div>'
        f"{f'<table>{rows}</table>' if rows else ''}{more}{said}</div>"
    )

"""A run's state as lines of a terminal, drawn with rich."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ag2_parallel.reporting import words

if TYPE_CHECKING:
    from typing import Literal, TextIO

    from rich.console import RenderableType

    from ag2_parallel.reporting.run_view import RunView

MOST_ROWS: Final = 8
"""Running tasks that are shown."""

_SYSTEMS: Final[dict[str, Literal["standard", "256", "truecolor"]]] = {
    "standard": "standard",
    "256": "256",
    "truecolor": "truecolor",
}

_LONGEST_NAME: Final = 32
_WIDEST_BAR: Final = 40
_NARROWEST_BAR: Final = 10


class TerminalPicture:
    """Draws the state of a run for one terminal: its size, its colours, its encoding."""

    def __init__(self, stream: TextIO) -> None:
        """For the terminal behind `stream`. NO_COLOR and TERM are obeyed."""
        self._terminal = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    @property
    def usable(self) -> bool:
        """Whether lines can be drawn again there: not on a dumb terminal."""
        return self._terminal.is_terminal and not self._terminal.is_dumb_terminal and not self._terminal.legacy_windows

    def lines(self, view: RunView, now: float) -> list[str]:
        """Some running tasks, and the bar of the whole run as the last line."""
        width, height = self._terminal.size
        room = max(0, min(MOST_ROWS, height - 4))
        return [*self._rendered(self._rows(view, now, room, width), width), self.bar(view, now)]

    def bar(self, view: RunView, now: float) -> str:
        """The bar of the whole run."""
        width = self._terminal.size.width - 1
        told = self._told(view, now)
        total, done = view.total, view.done
        count = f"{done:,}/{total:,}" if total is not None else f"{done:,} done"
        texts = ["  ".join([count, *told[:some]]) for some in range(len(told), -1, -1)]
        # What matters less is left out where there is no room.
        after = next((text for text in texts if width - cell_len(text) - 2 >= _NARROWEST_BAR), count)
        bar_width = min(_WIDEST_BAR, width - cell_len(after) - 2)
        parts: list[RenderableType] = []
        if total is not None and bar_width >= _NARROWEST_BAR:
            style = "red" if view.finished and view.bad else "green" if view.finished else "cyan"
            parts.append(
                ProgressBar(
                    total=max(1, total), completed=done, width=bar_width, complete_style=style, finished_style=style
                )
            )
        parts.append(Text(after, no_wrap=True, overflow="ellipsis"))
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_row(*parts)
        return self._rendered(grid, width)[0]

    @staticmethod
    def _told(view: RunView, now: float) -> list[str]:
        """What stands behind the bar, the most important first."""
        told = [
            f"{count:,} {status.replace('_', ' ')}" for status, count in view.counts.items() if status != "succeeded"
        ]
        if view.kept:
            told.append(f"{view.kept:,} kept")
        told.append(words.clock(now - view.started))
        remaining = view.remaining(now)
        if remaining is not None and not view.finished:
            told[-1] += f", {words.clock(remaining)} left"
        if view.tokens:
            told.append(words.tokens(view.tokens))
        if view.cost:
            told.append(words.dollars(view.cost))
        return told

    @staticmethod
    def _rows(view: RunView, now: float, room: int, width: int) -> Table:
        running = list(view.running.values())
        shown = running if len(running) <= room else running[: max(0, room - 1)]
        longest = min(_LONGEST_NAME, max(8, width // 3))
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, justify="right")
        grid.add_column(no_wrap=True, overflow="ellipsis")
        for task in shown:
            name = words.harmless(task.name)
            name = name if cell_len(name) <= longest else set_cell_size(name, longest - 1) + "…"
            step = words.harmless(task.step(now))
            grid.add_row(Text(f"  {name}"), Text(words.clock(now - task.since)), Text(step, style="dim"))
        if len(shown) < len(running) and room:
            grid.add_row(Text(f"  and {len(running) - len(shown):,} more", style="dim"), Text(""), Text(""))
        return grid

    def _rendered(self, part: Table, width: int) -> list[str]:
        if not part.row_count:
            return []
        terminal, out = self._terminal, _Out()
        out.encoding = self._encoding
        console = Console(
            file=out,
            width=max(1, width - 1),
            color_system=_SYSTEMS.get(terminal.color_system or "", "standard"),
            force_terminal=True,
            no_color=terminal.no_color or terminal.color_system is None,
            legacy_windows=False,
            highlight=False,
        )
        console.print(part, crop=True)
        return out.getvalue().encode(self._encoding, "backslashreplace").decode(self._encoding).splitlines()


class _Out(io.StringIO):
    """Text for a terminal of that encoding: rich draws with what the encoding has."""

    encoding: str = "utf-8"

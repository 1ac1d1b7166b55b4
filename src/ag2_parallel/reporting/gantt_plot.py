"""The Gantt of a run as a picture, drawn with matplotlib."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import MissingExtraError
from ag2_parallel.reporting.report_data import KINDS, STATUSES, report_data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLOURS: Final = {
    "attempt": "#dfe3e8",
    "call": "#4a86c8",
    "tool": "#8b68c4",
    "wait": "#e3b341",
    "backoff": "#f3e3b5",
}
_NAMES: Final = {"call": "model call", "tool": "tool", "wait": "waiting", "backoff": "between attempts"}
_TONES: Final = ("#227a4f", "#c2352d", "#9a5700", "#656d76", "#a9b0b8")
_NAMED: Final = 60
"""Pictures of more tasks name none of them: nobody could read it."""

_TALLEST: Final = 40.0
"""Inches."""


def need_matplotlib() -> None:
    """Raise `MissingExtraError` if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise MissingExtraError('timeline: pictures need matplotlib: pip install "ag2-parallel[plots]"') from error


def gantt_picture(run: Mapping[str, Any], form: str) -> bytes:
    """The picture.

    Args:
        run: What `RunResults.to_dict` gives.
        form: `svg` or `png`.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = report_data(run)
    tasks = data["tasks"]
    height = min(_TALLEST, 1.2 + (0.3 if len(tasks) <= _NAMED else 0.05) * max(1, len(tasks)))
    with rc_context({"font.size": 9, "svg.fonttype": "none", "text.parse_math": False}):
        figure = Figure(figsize=(11, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for kind in ("attempt", "backoff", "call", "tool", "wait"):
            _draw(axes, kind, tasks)
        _end_marks(axes, tasks)
        _dress(axes, data)
        picture = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else None
        figure.savefig(picture, format=form, dpi=150, facecolor="white", metadata=metadata)
    return picture.getvalue()


def _draw(axes: Any, kind: str, tasks: Sequence[Mapping[str, Any]]) -> None:
    number = KINDS.index(kind)
    rows, widths, starts = [], [], []
    for row, task in enumerate(tasks):
        flat = task["x"]
        for at in range(0, len(flat), 5):
            if flat[at] == number:
                rows.append(row)
                starts.append(((task["t"] or 0) + flat[at + 3]) / 1000)
                widths.append(flat[at + 4] / 1000)
    if rows:
        height = 0.7 if kind == "attempt" else 0.46
        label = _NAMES.get(kind)
        axes.barh(rows, widths, left=starts, height=height, color=_COLOURS[kind], linewidth=0, label=label)


def _end_marks(axes: Any, tasks: Sequence[Mapping[str, Any]]) -> None:
    """A stroke at the end of each task that did not succeed, in the colour of its status."""
    for status, name in enumerate(STATUSES):
        ended = [
            (row, (task["t"] + task["d"]) / 1000)
            for row, task in enumerate(tasks)
            if task["s"] == status and task["t"] is not None
        ]
        if status and ended:
            axes.plot(
                [end for _, end in ended], [row for row, _ in ended], "|", color=_TONES[status], markersize=9,
                markeredgewidth=2.4, label=name.replace("_", " "), zorder=4,
            )  # fmt: skip


def _dress(axes: Any, data: Mapping[str, Any]) -> None:
    tasks = data["tasks"]
    axes.set_ylim(len(tasks) - 0.3, -0.7)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds")
    if len(tasks) <= _NAMED:
        axes.set_yticks(range(len(tasks)), [_printable(task["n"]) for task in tasks])
    else:
        axes.set_ylabel(f"{len(tasks):,} tasks")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e2e4e7", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(_printable(f"{data['run']}: {data['counts'][0]:,} of {data['total']:,} succeeded"), loc="left")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="lower right", frameon=False, ncols=8, bbox_to_anchor=(1, 1.0), fontsize=8, handlelength=1.2)


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:60]

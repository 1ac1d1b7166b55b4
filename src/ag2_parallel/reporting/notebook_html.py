"""How results, runners and handles look as the last line of a notebook's cell: plain tables, for light and dark pages."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.redaction import masked_config, masked_text
from ag2_parallel.reporting import words
from ag2_parallel.results import TaskStatus, preview

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from ag2_parallel.results import ParallelTaskResult
    from ag2_parallel.run_results import RunResults

_MOST_ROWS: Final = 50

_MARKS: Final = {
    TaskStatus.SUCCEEDED: ("✓", "#2f9463"),
    TaskStatus.FAILED: ("✕", "#d9534a"),
    TaskStatus.TIMED_OUT: ("◔", "#c27a1a"),
    TaskStatus.CANCELLED: ("■", "#7d868f"),
    TaskStatus.SKIPPED: ("-", "#7d868f"),
}
"""A sign and a colour that can be read on white and on black."""

_NUMBER: Final = "text-align:right;vertical-align:middle;white-space:nowrap;font-variant-numeric:tabular-nums"
_TEXT: Final = "text-align:left;vertical-align:middle"
_MUTED: Final = "opacity:.7"


def results_html(results: RunResults) -> str:
    """Results as a line about the run and a table of the tasks."""
    shown = results[:_MOST_ROWS]
    began = [result.started_at for result in shown if result.started_at is not None]
    ended = [result.finished_at for result in shown if result.finished_at is not None]
    span = (min(began), max(ended)) if began and ended else None
    columns = [("task", _TEXT), ("status", _TEXT), ("", _TEXT), ("duration", _NUMBER)]
    if any(result.usage.calls for result in shown):
        columns += [("calls", _NUMBER), ("tokens", _NUMBER)]
    if any(result.usage.cost for result in shown):
        columns.append(("cost", _NUMBER))
    columns.append(("output or error", _TEXT))
    names, styles = [name for name, _ in columns], [style for _, style in columns]
    rows = [_row([cells[name] for name in names], styles) for cells in (_cells(result, span) for result in shown)]
    more = len(results) - len(shown)
    rest = (
        f'<p style="{_MUTED}">and {more:,} more; results.timeline("run.html") shows all of them</p>' if more > 0 else ""
    )
    return f"<p>{_headline(results)}</p>{_table(_row(names, styles, 'th'), rows)}{rest}"


def _headline(results: RunResults) -> str:
    usage, metrics = results.usage, results.metrics
    told = [f"<b>{escape(repr(results))}</b>"]
    if isinstance(metrics.get("wall"), int | float):
        told.append(f"{metrics['wall']:.1f} s")
    if isinstance(metrics.get("speedup"), int | float):
        told.append(f"{metrics['speedup']:.1f} at once on average")
    if usage.calls:
        told += [f"{usage.calls:,} model calls", words.tokens(usage.total_tokens)]
        told.append("cost unknown" if usage.cost is None else words.dollars(usage.cost))
    return f' <span style="{_MUTED}">·</span> '.join(told)


def _cells(result: ParallelTaskResult, span: tuple[datetime, datetime] | None) -> dict[str, str]:
    sign, colour = _MARKS[result.status]
    status = f'<span style="color:{colour};white-space:nowrap"><b>{sign}</b> {escape(result.status.replace("_", " "))}</span>'
    usage = result.usage
    return {
        "task": escape(masked_text(result.name)),
        "status": status,
        "": _when(result, span, colour),
        "duration": f"{result.duration:.2f} s" if result.started_at is not None else "-",
        "calls": f"{usage.calls:,}",
        "tokens": f"{usage.total_tokens:,}",
        "cost": "unknown" if usage.cost is None else words.dollars(usage.cost),
        "output or error": escape(
            preview(result.output if result.ok else str(result.error or result.stop_reason), 160)
        ),
    }


def _when(result: ParallelTaskResult, span: tuple[datetime, datetime] | None, colour: str) -> str:
    """A bar that stands where in the run the task ran."""
    if span is None or result.started_at is None:
        return ""
    whole = max((span[1] - span[0]).total_seconds(), 1e-6)
    left = (result.started_at - span[0]).total_seconds() / whole * 100
    wide = min(100 - left, max(1.5, result.duration / whole * 100))
    bar = f'<div style="position:absolute;height:8px;border-radius:2px;left:{left:.1f}%;width:{wide:.1f}%;background:{colour}"></div>'
    return f'<div style="position:relative;width:140px;height:8px;border-radius:2px;background:rgba(128,128,128,.2)">{bar}</div>'


def options_html(options: Mapping[str, Any]) -> str:
    """A runner: its options as given, keys masked."""
    rows = [_row((escape(name), escape(_shown(name, value))), (_TEXT, _TEXT)) for name, value in options.items()]
    return (
        f"<p><b>ParallelAgentRunner</b></p>{_table('', rows)}"
        if rows
        else "<p><b>ParallelAgentRunner</b>, all defaults</p>"
    )


def _shown(name: str, value: object) -> str:
    if name == "llm_config":
        return "given"
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    return preview(repr(masked_config(value)), 200)


def handle_html(run_id: str, status: Mapping[str, Any]) -> str:
    """A handle: where its run stands now."""
    rows = [_row((escape(name), escape(str(value))), (_TEXT, _NUMBER)) for name, value in status.items()]
    return f"<p><b>Run {escape(run_id)}</b></p>{_table('', rows)}"


def _row(cells: Iterable[str], styles: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f'<{tag} style="{s}">{c}</{tag}>' for c, s in zip(cells, styles, strict=True)) + "</tr>"


def _table(head: str, rows: Sequence[str]) -> str:
    return f"<table>{f'<thead>{head}</thead>' if head else ''}<tbody>{''.join(rows)}</tbody></table>"

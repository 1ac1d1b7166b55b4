"""What a report page shows, as compact plain data.

::

    results (to_dict) ─► counts, figures, causes          whole
                      ─► tasks: numbers and spans         the 10,000 that matter most, 60,000 spans in all
                      ─► texts: error, output, transcript within 2.8 MB in all, shared fairly
"""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.reporting.allowance import cut, fitted, level, size
from ag2_parallel.reporting.causes import causes
from ag2_parallel.spans import Span, longest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATUSES: Final = ("succeeded", "failed", "timed_out", "cancelled", "skipped")
KINDS: Final = ("attempt", "call", "wait", "tool", "backoff")

MOST_TASKS: Final = 10_000
"""Tasks on a page; of a larger run those that did not succeed, then the first."""

MOST_SPANS: Final = 60_000
"""Spans on a page, shared evenly by its tasks."""

TEXT_BYTES: Final = 2_800_000
LONGEST_TEXT: Final = 20_000
"""Characters of one message."""

_MOST_CAUSES: Final = 100


def report_data(run: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a page.

    Args:
        run: What `RunResults.to_dict` gives.
    """
    results = run["results"]
    shown = _chosen(results)
    words = _Words()
    origin = min((moment for result in results if (moment := _began(result)) is not None), default=0.0)
    texts = [_texts(result) for result in shown]
    needs = [sum(size(text) for _, _, text in each) for each in texts]
    allowed = level(needs, TEXT_BYTES)
    most_spans = max(4, MOST_SPANS // max(1, len(shown)))
    tasks = [_task(result, told, allowed, most_spans, origin, words) for result, told in zip(shown, texts, strict=True)]
    return {
        "version": 1,
        "run": run["run_id"],
        "stopped": run.get("stop_reason"),
        "started": _earliest(results),
        "counts": [sum(result["status"] == status for result in results) for status in STATUSES],
        "total": len(results),
        "metrics": _finite(run.get("metrics") or {}),
        "usage": {name: value for name, value in _finite(run["usage"]).items() if name != "by_model"},
        "models": {name: _finite(usage) for name, usage in (run["usage"].get("by_model") or {}).items()},
        "causes": [[c.status, c.kind, c.pattern, c.tasks] for c in causes(shown)[:_MOST_CAUSES]],
        "tasks": tasks,
        "words": words.all,
    }


class _Words:
    """Texts that many tasks have in common, each kept once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, word: object) -> int:
        text = str(word or "")
        if text not in self._places:
            self._places[text] = len(self.all)
            self.all.append(text)
        return self._places[text]


def _chosen(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if len(results) <= MOST_TASKS:
        return list(results)
    first = sorted(results, key=lambda result: result["status"] == "succeeded")[:MOST_TASKS]
    return sorted(first, key=lambda result: int(result["index"]))


def _task(
    result: Mapping[str, Any],
    texts: Sequence[tuple[str, str, str]],
    allowed: int,
    most_spans: int,
    origin: float,
    words: _Words,
) -> dict[str, Any]:
    usage, error = result["usage"], result.get("error") or {}
    shown = fitted([text for _, _, text in texts], allowed)
    started = result.get("started_at")
    spans = [Span.from_dict(span) for span in result.get("trace") or ()]
    kept = sorted(longest(spans, most_spans), key=lambda span: span.start)
    cost = usage.get("cost")
    return {
        "n": result["name"],
        "i": result["index"],
        "s": STATUSES.index(result["status"]),
        "r": words.place(result.get("stop_reason")),
        "g": words.place(result.get("group")),
        "t": None if started is None else _ms(_seconds(started) - origin),
        "q": _ms(result.get("queued") or 0),
        "d": _ms(result.get("duration") or 0),
        "w": _ms(result.get("waited") or 0),
        "a": result.get("attempts") or 0,
        "u": [usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), usage.get("calls", 0),
              usage.get("retried_calls", 0), usage.get("unreported_calls", 0)],
        "c": None if cost is None or not math.isfinite(cost) else round(cost, 6),
        "e": [error.get("type"), error.get("kind"), error.get("agent"), error.get("tool"), error.get("status_code")]
        if error
        else None,
        "x": [number for span in kept for number in _span(span, words)],
        "y": (result.get("dropped_spans") or 0) + len(spans) - len(kept),
        "m": [[kind, words.place(who), text] for (kind, who, _), text in zip(texts, shown, strict=True)],
    }  # fmt: skip


def _span(span: Span, words: _Words) -> tuple[float, ...]:
    kind = KINDS.index(span.kind) if span.kind in KINDS else 1
    return kind, words.place(span.label), words.place(span.detail), _ms(span.start), _ms(span.duration)


# ---- texts


def _texts(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Kind, speaker and text of what a reader may want to read, the most telling first."""
    error = result.get("error") or {}
    told = [
        ("error", "", str(error.get("message") or "")),
        ("traceback", "", str(error.get("traceback") or "")),
        ("output", "", _readable(result.get("output"))),
    ]
    said = [part for message in result.get("chat_history") or () for part in _message(message)]
    return [(kind, who, cut(text, LONGEST_TEXT)) for kind, who, text in [*told, *said] if text]


def _message(message: Any) -> list[tuple[str, str, str]]:
    if not isinstance(message, dict):
        return [("said", "", _readable(message))]
    who = str(message.get("name") or message.get("role") or "")
    is_answer = message.get("role") in {"tool", "function"}
    parts = [("answered" if is_answer else "said", who, _readable(message.get("content")))]
    for call in message.get("tool_calls") or ():
        function = (call.get("function") if isinstance(call, dict) else None) or {}
        parts.append(("called", who, f"{function.get('name', '')}({function.get('arguments', '')})"))
    call = message.get("function_call")
    if isinstance(call, dict):
        parts.append(("called", who, f"{call.get('name', '')}({call.get('arguments', '')})"))
    return parts


def _readable(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value):
        return "\n".join(part["text"] for part in value)
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


# ---- numbers


def _ms(seconds: float) -> float:
    """Milliseconds to a tenth, short to write."""
    rounded = round(seconds * 1000, 1) if math.isfinite(seconds) else 0
    return int(rounded) if rounded == int(rounded) else rounded


def _finite(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has; those of groups, which may be as many as tasks, are left out."""
    return {
        name: _finite(value) if isinstance(value, dict) else value
        for name, value in numbers.items()
        if name != "groups"
        and (
            isinstance(value, dict | str) or value is None or (isinstance(value, int | float) and math.isfinite(value))
        )
    }


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _began(result: Mapping[str, Any]) -> float | None:
    started = result.get("started_at")
    return None if started is None else _seconds(started) - (result.get("queued") or 0)


def _earliest(results: Sequence[Mapping[str, Any]]) -> str | None:
    return min((result["started_at"] for result in results if result.get("started_at")), default=None)

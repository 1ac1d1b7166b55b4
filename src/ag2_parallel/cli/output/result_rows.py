"""A result as a row: one schema, with its version in every row."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ag2_parallel.results import ParallelTaskResult

SCHEMA_VERSION: Final = 1
"""Goes up when a field changes its meaning or goes away; new fields may come at any time."""

TRANSCRIPT: Final = ("chat_history", "console")

COLUMNS: Final[Mapping[str, str]] = {
    "schema_version": "int", "run_id": "text", "index": "int", "name": "text", "status": "text", "output": "text",
    "stop_reason": "text", "error_kind": "text", "error_type": "text", "error_message": "text", "attempts": "int",
    "queued": "seconds", "duration": "seconds", "waited": "seconds", "started_at": "text", "finished_at": "text",
    "last_speaker": "text", "group": "text", "prompt_tokens": "int", "completion_tokens": "int",
    "total_tokens": "int", "calls": "int", "cost": "seconds", "metadata": "text", "directory": "text",
}  # fmt: skip
"""The columns of tables: CSV and Parquet."""

_LINE_ENDS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def result_row(result: ParallelTaskResult, run_id: str, *, transcripts: bool = True) -> dict[str, Any]:
    """Everything about a result, as plain data."""
    row = {"schema_version": SCHEMA_VERSION, "run_id": run_id, **result.to_dict()}
    if not transcripts:
        for name in TRANSCRIPT:
            del row[name]
    return row


def table_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row; what is nested stands as JSON."""
    error, usage = row["error"] or {}, row["usage"]
    flat = {
        **row,
        **usage,
        "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        **{f"error_{name}": error.get(name) for name in ("kind", "type", "message")},
        "output": _cell(row["output"]),
        "metadata": _cell(row["metadata"]),
    }
    return {name: flat[name] for name in COLUMNS}


def json_text(value: Any) -> bytes:
    """JSON in one line of UTF-8, whatever counts as the end of a line where it is read.

    Half of a surrogate pair is escaped, and what is no finite number is its name.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return (text if text.isascii() else text.translate(_LINE_ENDS)).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()
    except ValueError:
        return json_text(_finite(value))


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json_text(value).decode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value

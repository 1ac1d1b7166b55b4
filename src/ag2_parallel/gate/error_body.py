"""The body of an error answer, and what the gate adds to it."""

from __future__ import annotations

import json
from typing import Any


def with_reason(body: bytes, reason: str) -> bytes:
    """The body with ` (reason)` at the end of its message, so that the SDK's exception says it."""
    parsed = _parsed(body)
    note = f" ({reason})"
    if not isinstance(parsed, dict):
        return body.rstrip() + note.encode()
    if isinstance(parsed.get("error"), str):
        parsed["error"] += note
        return json.dumps(parsed).encode()
    inner = _inner(parsed)
    for name in ("message", "detail"):
        if isinstance(inner.get(name), str):
            inner[name] += note
            break
    else:
        inner["message"] = note.strip()
    return json.dumps(parsed).encode()


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _inner(parsed: Any) -> dict[str, Any]:
    if not isinstance(parsed, dict):
        return {}
    error = parsed.get("error")
    return error if isinstance(error, dict) else parsed

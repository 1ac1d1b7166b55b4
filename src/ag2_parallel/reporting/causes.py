"""Which tasks did not succeed for one and the same cause."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONGEST: Final = 300
"""Characters of a message that are looked at."""

_QUOTED: Final = re.compile(r"\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'")
_ID: Final = re.compile(
    r"\b(?=[\w-]*\d)[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4,})*\b|\b0x[0-9a-fA-F]+\b|\b[\w-]*_[A-Za-z0-9]{12,}\b"
)
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_SPACE: Final = re.compile(r"\s+")


@dataclass(slots=True)
class Cause:
    """Tasks that did not succeed for one cause.

    Attributes:
        status: How they ended.
        kind: The errors' kind, or the stop reason where there was no error.
        pattern: The message they have in common: names, ids and numbers masked.
        tasks: Their places in what was given.
    """

    status: str
    kind: str
    pattern: str
    tasks: list[int] = field(default_factory=list)


def causes(results: Iterable[Mapping[str, Any]]) -> list[Cause]:
    """The causes of the results that did not succeed (plain data, as `to_dict` gives), the most frequent first."""
    found: dict[tuple[str, str, str], Cause] = {}
    for place, result in enumerate(results):
        if result["status"] == "succeeded":
            continue
        error = result.get("error") or {}
        kind = str(error.get("kind") or result.get("stop_reason") or "unknown")
        pattern = masked_message(str(error.get("message") or ""), str(result["name"]))
        key = (str(result["status"]), kind, pattern)
        found.setdefault(key, Cause(*key)).tasks.append(place)
    return sorted(found.values(), key=lambda cause: -len(cause.tasks))


def masked_message(message: str, task: str) -> str:
    """The first line of a message with what differs from task to task masked."""
    text = message.strip().partition("\n")[0][:_LONGEST]
    if len(task) > 2:
        text = text.replace(task, "…")
    text = _QUOTED.sub("“…”", text)
    text = _ID.sub("…", text)
    text = _NUMBER.sub("#", text)
    return _SPACE.sub(" ", text).strip()

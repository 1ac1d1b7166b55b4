"""What was looked at, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

State: TypeAlias = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: What it is.
        state: `ok`; `note`: not needed by everybody; `problem`: something has to be done.
        told: What was found.
        advice: What to do; empty where nothing is.
    """

    what: str
    state: State
    told: str
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

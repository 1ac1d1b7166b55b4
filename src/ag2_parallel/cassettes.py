"""Cassettes: the model calls of a whole run in a file, to be recorded and to be played."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Record:
    """Record every model call of a run: answers, latencies, 429s and broken connections. Keys are never stored.

    Attributes:
        path: The file; what an earlier recording left in it is replaced, unless that was an earlier life of the same run,
            which goes on. Only its owner may read it.
    """

    path: str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Replay:
    """Answer every model call of a run from a cassette: no key is needed and no network is touched.

    A call that is not in it fails its task with `CassetteMissError`. Limits are not waited for.

    Attributes:
        path: The file.
        speed: 1: answers take as long as they did; 10: a tenth of it; 0: no time. Waits between tries likewise.
    """

    path: str | os.PathLike[str]
    speed: float = 0.0


Cassette: TypeAlias = Record | Replay


def cassette_problem(value: object) -> str | None:
    """Why a value is no cassette, or None."""
    if value is None:
        return None
    if not isinstance(value, Record | Replay):
        return f"{value!r} is neither Record(path) nor Replay(path)"
    path: object = value.path
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        return f"{path!r} is not a path"
    speed: object = value.speed if isinstance(value, Replay) else 0.0
    if not isinstance(speed, int | float) or isinstance(speed, bool) or not 0 <= speed < float("inf"):
        return f"speed={speed!r} is not a number from 0"
    return None

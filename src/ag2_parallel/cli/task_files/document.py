"""A file's data, and where in the file each part of it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

Inside: TypeAlias = tuple[str | int, ...]
"""A path inside a file's data: keys and positions from 0."""


class Plain(str):
    """Text that stood in a YAML file without quotes: a number where a number is wanted, else text."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file, both counted from 1; None where a file has no lines."""

    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says.

    Attributes:
        path: The file.
        data: Mappings, lists, text, numbers and None.
        find: The place of a part of the data, or of the nearest part around it.
    """

    path: Path
    data: Any
    find: Callable[[Inside], Place]

    def where(self, inside: Sequence[str | int] = ()) -> str:
        """File, line, column and the path inside, for the start of a message."""
        known = existing(self.data, inside)
        place = self.find(known)
        numbers = [str(number) for number in (place.line, place.column) if number is not None]
        return ":".join([str(self.path), *numbers]) + (f": {shown_path(inside)}" if inside else "")

    def error(self, problem: str, inside: Sequence[str | int] = ()) -> ConfigurationError:
        """An error about a part of the file."""
        return ConfigurationError(f"{self.where(inside)}: {problem}")


def existing(data: Any, inside: Iterable[str | int]) -> Inside:
    """The steps of a path that the data has; a validator's own steps (names of types) are left out."""
    found: list[str | int] = []
    for step in inside:
        if (isinstance(data, dict) and step in data) or (
            isinstance(data, list) and isinstance(step, int) and step < len(data)
        ):
            data = data[step]  # type: ignore[index] # a key of this mapping, or a position in this list
            found.append(step)
    return tuple(found)


def shown_path(inside: Iterable[str | int]) -> str:
    """`tasks[3].timeout`."""
    text = ""
    for step in inside:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def resolved(value: Any) -> Any:
    """Free data with unquoted text made what JSON makes of it: numbers, true and false; all else stays text."""
    if isinstance(value, Plain):
        return _of_json(value)
    if isinstance(value, dict):
        return {str(key): resolved(item) for key, item in value.items()}
    return [resolved(item) for item in value] if isinstance(value, list) else value


def _of_json(text: str) -> Any:
    import json

    if text in {"true", "false"} or (text[:1] in "-0123456789" and text[-1:].isdigit()):
        try:
            return json.loads(text)
        except ValueError:  # 0123, 12:30, 1-2
            return str(text)
    return str(text)

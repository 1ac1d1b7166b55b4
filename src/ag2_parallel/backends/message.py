"""What every message between processes is: a frozen dataclass that is quickly pickled.

The way of the standard library asks a class for its fields each time, in both processes, which costs more than all else about a message.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a message."""
    made: Any = dataclass(frozen=True, slots=True)(cls)
    names = [field.name for field in fields(made)]
    made.__reduce__ = _reduce(made, attrgetter(*names)) if len(names) > 1 else _reduce_short(made, names)
    return made  # type: ignore[no-any-return]


def _reduce(made: Any, values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], tuple[Any, tuple[Any, ...]]]:
    return lambda self: (made, values(self))


def _reduce_short(made: Any, names: list[str]) -> Callable[[Any], tuple[Any, tuple[Any, ...]]]:
    """For fewer than two fields, of which an `attrgetter` gives no tuple."""
    return lambda self: (made, tuple(getattr(self, name) for name in names))

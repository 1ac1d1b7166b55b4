"""What the graph of a team is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Level(IntEnum):
    """How closely an object belongs to the team."""

    SHARED = 0
    """Reached by code only: shared, unless it leads back to the team."""
    HELD = 1
    """Settings: containers are copied, what they hold is shared."""
    OWNED = 2
    """State of the team: copied deep, or refused."""


class Kind(Enum):
    """How an object is copied."""

    DICT = "dict"
    LIST = "list"
    SET = "set"
    FRESH = "fresh"
    OBJECT = "object"
    FUNCTION = "function"
    CELL = "cell"
    TUPLE = "tuple"
    FROZENSET = "frozenset"
    METHOD = "method"
    BUILTIN = "builtin"
    PARTIAL = "partial"
    WEAKREF = "weakref"
    REDUCED = "reduced"
    DEEPCOPIED = "deepcopied"
    OPAQUE = "opaque"


LATE_KINDS = frozenset(
    {
        Kind.TUPLE,
        Kind.FROZENSET,
        Kind.METHOD,
        Kind.BUILTIN,
        Kind.PARTIAL,
        Kind.WEAKREF,
        Kind.REDUCED,
        Kind.DEEPCOPIED,
    }
)
"""Kinds whose copies cannot be made empty and filled later: their parts come first."""


class Place(NamedTuple):
    """Where a part sits in its whole: `sort` is `item`, `key`, `attr`, `slot`, `cell`, `global` and the like."""

    sort: str
    key: Any = None


class Part(NamedTuple):
    """One thing that an object refers to.

    Attributes:
        place: Where it sits.
        value: The thing.
        level: How closely it belongs to the team, seen from here.
        label: What to call it in a message.
        rule: How to take it apart, where its type alone does not say.
        weak: Follow it only if something else makes it part of the team; leave it out otherwise.
    """

    place: Place
    value: Any
    level: Level
    label: str
    rule: Callable[[Any, Level], Anatomy] | None = None
    weak: bool = False


class Anatomy(NamedTuple):
    """An object taken apart.

    Attributes:
        kind: How it is copied.
        copied: Whether it is copied in its own right, and not only where it leads to something copied.
        snapshot: What its copy starts from; parts are put over it.
        parts: What it refers to, values that are never copied left out.
        refusal: Why it cannot be copied, as the end of a sentence; it matters only if it has to be.
    """

    kind: Kind
    copied: bool
    snapshot: Any = None
    parts: list[Part] = []  # noqa: RUF012 - a NamedTuple's default, never changed
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class TeamRules:
    """What a line of AG2 calls a team.

    Attributes:
        members: Types of objects that belong to the team wherever they are found, be it in a tool's closure.
        owners: Those of them that a message names, and that no class may hold.
        owner: What to call one of the owners, or the root, in a message.
        dissect: Takes any object apart, the line's own by their meaning and others by their type.
    """

    members: tuple[type, ...]
    owners: tuple[type, ...]
    owner: Callable[[Any], str]
    dissect: Callable[[Any, Level], Anatomy]


@dataclass(frozen=True, slots=True)
class Fresh:
    """A stand-in for state that every copy starts anew."""

    factory: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Body:
    """The snapshot of an instance: its class, its `__dict__` and its slots.

    Attributes:
        identified_by: An attribute that holds the copy's own `id`.
    """

    type: type
    attributes: dict[str, Any] | None
    slots: dict[str, Any] = field(default_factory=dict)
    identified_by: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One object of the graph."""

    obj: Any
    level: Level
    parent: Node | None
    label: str
    rule: Callable[[Any, Level], Anatomy] | None = None
    anatomy: Anatomy | None = None
    edges: list[tuple[Place, Node]] = field(default_factory=list)
    copied: bool = False

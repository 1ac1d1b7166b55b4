"""Putting copies together: a survey compiled into flat lists, so that a copy costs microseconds per object.

Every object to be copied has a slot in one list, `new`, which is filled in this order:

1. dicts (the `__dict__` of instances too) and lists, as shallow copies of what the survey saw,
2. whatever else can be made empty or from leaves: sets, cells, locks, fresh state, overlaid globals,
3. instances around their `__dict__`, and functions around their cells,
4. patches of items: wherever a copied container still refers to an original that has a copy, that is replaced,
5. what needs its parts first: tuples, methods, partial functions, reduced objects, in the order of their needs, each
   put at once where it belongs.

Then the patches of attributes, and what can only be filled once everything is there.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_set_attribute = object.__setattr__


@dataclass(slots=True)
class Plan:
    """What to do to make one copy. Read only once compiled, so that many threads may run it at once.

    Attributes:
        dicts: Snapshots of plain dicts, at the slots from 0.
        lists: Snapshots of plain lists, at the slots after the dicts.
        made: Functions that make the next slots, each with its arguments.
        instances: Class, slot of the `__dict__` (or None) and values of `__slots__`, for the next slots.
        functions: What the next slots, functions, are made of.
        late: Makers of the last slots, given the slots before, and the containers and keys where each one goes.
        items: Patches `new[whole][key] = new[part]`.
        attributes: Patches of attribute `key` of `new[whole]` to `new[part]`.
        fills: Slots filled at the end, each by a function of the slots.
        identified: Slots and attributes that hold the copy's own `id`.
    """

    dicts: list[dict[Any, Any]] = field(default_factory=list)
    lists: list[list[Any]] = field(default_factory=list)
    made: list[tuple[Callable[..., Any], tuple[Any, ...]]] = field(default_factory=list)
    instances: list[tuple[type, int | None, tuple[tuple[str, Any], ...]]] = field(default_factory=list)
    functions: list[FunctionParts] = field(default_factory=list)
    late: list[tuple[Callable[[list[Any]], Any], list[tuple[int, Any]]]] = field(default_factory=list)
    items: list[tuple[int, Any, int]] = field(default_factory=list)
    attributes: list[tuple[int, str, int]] = field(default_factory=list)
    fills: list[Callable[[list[Any]], Any]] = field(default_factory=list)
    identified: list[tuple[int, str]] = field(default_factory=list)

    def run(self) -> list[Any]:
        """Make one copy of everything; the slots."""
        new: list[Any] = [*map(dict.copy, self.dicts), *map(list.copy, self.lists)]
        new += [maker(*args) for maker, args in self.made]
        for cls, body, slots in self.instances:
            made: Any = object.__new__(cls)
            if body is not None:
                _set_attribute(made, "__dict__", new[body])
            for name, value in slots:
                _set_attribute(made, name, value)
            new.append(made)
        new += [parts.make(new) for parts in self.functions]
        for whole, key, part in self.items:
            new[whole][key] = new[part]
        for make, places in self.late:
            new.append(part := make(new))
            for whole, key in places:
                new[whole][key] = part
        for whole, name, part in self.attributes:
            _set_attribute(new[whole], name, new[part])
        for fill in self.fills:
            fill(new)
        for slot, name in self.identified:
            _set_attribute(new[slot], name, id(new[slot]))
        return new


@dataclass(frozen=True, slots=True)
class FunctionParts:
    """A function to be rebuilt.

    Attributes:
        original: The function.
        module_globals: Its globals, or None where `overlay` has them.
        overlay: The slot of the globals laid over its module's.
        cells: Its closure: cells shared with the original, or slots.
    """

    original: types.FunctionType
    overlay: int | None
    cells: tuple[types.CellType | int, ...]

    def make(self, new: list[Any]) -> types.FunctionType:
        """The function anew, its cells and globals taken from the slots."""
        original = self.original
        scope = original.__globals__ if self.overlay is None else new[self.overlay]
        closure = tuple([new[cell] if isinstance(cell, int) else cell for cell in self.cells]) or None
        made = types.FunctionType(original.__code__, scope, original.__name__, original.__defaults__, closure)
        made.__kwdefaults__ = original.__kwdefaults__
        made.__qualname__ = original.__qualname__
        made.__doc__ = original.__doc__
        made.__module__ = original.__module__
        made.__annotations__ = original.__annotations__
        if original.__dict__:
            made.__dict__.update(original.__dict__)
        return made


def fill_dict(slot: int, entries: list[tuple[Any, Any]]) -> Callable[[list[Any]], None]:
    """A filler of an emptied dict, whose keys and values are `Ref` or constants."""

    def fill(new: list[Any]) -> None:
        target = new[slot]
        target.clear()
        for key, value in entries:
            target[resolve(key, new)] = resolve(value, new)

    return fill


def fill_entry(slot: int, key: int, value: Any) -> Callable[[list[Any]], None]:
    """A filler of one entry, whose key is a slot."""

    def fill(new: list[Any]) -> None:
        new[slot][new[key]] = value

    return fill


def fill_set(slot: int, members: list[Any]) -> Callable[[list[Any]], None]:
    """A filler of an emptied set, whose members are `Ref` or constants."""

    def fill(new: list[Any]) -> None:
        target = new[slot]
        target.clear()
        target.update([resolve(member, new) for member in members])

    return fill


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a slot."""

    slot: int


def resolve(value: Any, new: list[Any]) -> Any:
    """A constant as it is, a `Ref` as what its slot holds."""
    return new[value.slot] if type(value) is Ref else value

"""Making what needs its parts first: tuples, methods, partial functions, weak references, reduced objects."""

from __future__ import annotations

import copy
import types
import weakref
from typing import TYPE_CHECKING, Any

from ag2_parallel.frameworks.cloning.node import Anatomy, Kind, Place
from ag2_parallel.frameworks.cloning.plan import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

Parts = list[tuple[Place, Any]]


def maker(  # noqa: PLR0911 - one for each kind
    anatomy: Anatomy, parts: Parts, seen: list[tuple[int, int]]
) -> Callable[[list[Any]], Any]:
    """What makes the copy of a late object, given the slots before it.

    Args:
        anatomy: The object taken apart.
        parts: Its parts, each a constant or a `Ref`.
        seen: The ids of instances that have a copy, with the copies' slots.
    """
    by_sort = {place.sort: value for place, value in parts}
    whole = anatomy.snapshot
    match anatomy.kind:
        case Kind.TUPLE:
            return _tuple(type(whole), list(whole), {place.key: value for place, value in parts})
        case Kind.FROZENSET:
            replaced = {id(place.key): value for place, value in parts}
            return lambda new: frozenset([resolve(replaced.get(id(m), m), new) for m in whole])
        case Kind.METHOD:
            func, bound = by_sort.get("func", whole.__func__), by_sort.get("self", whole.__self__)
            return lambda new: types.MethodType(resolve(func, new), resolve(bound, new))
        case Kind.BUILTIN:
            return lambda new: getattr(resolve(by_sort["self"], new), whole.__name__)
        case Kind.PARTIAL:
            return _partial(whole, by_sort)
        case Kind.WEAKREF:
            return lambda new: weakref.ref(resolve(by_sort["target"], new))
        case Kind.DEEPCOPIED:
            return lambda new: copy.deepcopy(whole, {original: new[slot] for original, slot in seen})
        case _:
            return _reduced(whole, by_sort)


def restorer(slot: int, anatomy: Anatomy, parts: Parts) -> Callable[[list[Any]], None]:
    """What gives a reduced object its state, as `copy.deepcopy` does."""
    _, stages = anatomy.snapshot
    stages = stages | {place.sort: value for place, value in parts}

    def restore(new: list[Any]) -> None:
        made = new[slot]
        state = resolve(stages["state"], new)
        if state is not None:
            _set_state(made, state)
        for item in resolve(stages["items"], new):
            made.append(item)
        for key, value in resolve(stages["pairs"], new):
            made[key] = value

    return restore


def _set_state(made: Any, state: Any) -> None:
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        made.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(made, name, value)


def _tuple(cls: type[tuple[Any, ...]], values: list[Any], replaced: dict[int, Any]) -> Callable[[list[Any]], Any]:
    for i, value in replaced.items():
        values[i] = value
    return lambda new: tuple.__new__(cls, [resolve(value, new) for value in values])


def _partial(whole: Any, by_sort: dict[str, Any]) -> Callable[[list[Any]], Any]:
    func = by_sort.get("func", whole.func)
    args = by_sort.get("args", whole.args)
    keywords = by_sort.get("keywords", whole.keywords)
    extra = dict(vars(whole))

    def make(new: list[Any]) -> Any:
        made = type(whole)(resolve(func, new), *resolve(args, new), **resolve(keywords, new))
        vars(made).update(extra)
        return made

    return make


def _reduced(whole: Any, by_sort: dict[str, Any]) -> Callable[[list[Any]], Any]:
    function, stages = whole
    args = by_sort.get("args", stages["args"])
    return lambda new: function(*resolve(args, new))

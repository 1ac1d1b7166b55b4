"""Taking Python objects apart: what they refer to, and how a copy of them is made."""

from __future__ import annotations

import copyreg
import functools
import threading
import types
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ag2_parallel.frameworks.cloning.leaves import holds_leaves_only, is_leaf, is_stdlib_type
from ag2_parallel.frameworks.cloning.node import Anatomy, Body, Kind, Level, Part, Place
from ag2_parallel.frameworks.cloning.references import named_globals, named_in_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DICTS = frozenset({dict, defaultdict, OrderedDict, Counter})
_LISTS = frozenset({list, deque, bytearray})
CONTAINERS = _DICTS | _LISTS | {set}
_INHERITED = ("__reduce_ex__", "__reduce__", "__getstate__")
_OPTIONAL = ("__deepcopy__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_OF_FUNCTIONS = {
    "__defaults__": "default arguments",
    "__kwdefaults__": "default arguments",
    "__dict__": "attribute",
}
_LOCKS = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}


def take_apart(obj: Any, level: Level) -> Anatomy:
    """Say what `obj` refers to and how it is copied, `obj` being held at `level`."""
    cls = type(obj)
    simple = _tuple if issubclass(cls, tuple) else _SIMPLE.get(cls)
    if simple is not None:
        return simple(obj, level)
    if cls in _LOCKS:
        return _lock(obj, level)
    if level is Level.OWNED:
        return _owned_instance(obj)
    return _reached_instance(obj)


def instance(obj: Any, part_of: Callable[[str, Any], Part], *, copied: bool) -> Anatomy:
    """An instance copied as a new object with a new `__dict__` and the same slots.

    Args:
        obj: The instance.
        part_of: Makes the part for an attribute, given its name and value.
        copied: Whether it is copied in its own right.
    """
    attributes = dict(vars(obj)) if hasattr(obj, "__dict__") else None
    slots = dict(_slots(obj))
    parts = [part_of(name, value) for name, value in (attributes or {}).items() if not is_leaf(value)]
    parts += [
        part_of(name, value)._replace(place=Place("slot", name)) for name, value in slots.items() if not is_leaf(value)
    ]
    return Anatomy(Kind.OBJECT, copied, Body(type(obj), attributes, slots), parts)


def attribute(level: Level) -> Callable[[str, Any], Part]:
    """The maker of parts for an instance whose attributes are all held at one level."""
    return lambda name, value: Part(Place("attr", name), value, level, f".{name}")


def is_plain(obj: Any) -> bool:
    """Whether an instance is no more than its `__dict__` and slots, and is copied in no way of its own."""
    cls: type = type(obj)
    of_its_own = (
        cls in copyreg.dispatch_table
        or any(getattr(cls, name) is not getattr(object, name) for name in _INHERITED)
        or any(hasattr(cls, name) for name in _OPTIONAL)
    )
    if of_its_own:
        return False
    try:
        _, _, _, items, pairs = obj.__reduce_ex__(4)
        object.__new__(cls)
    except TypeError:  # state outside Python's reach, such as a connection's
        return False
    return items is None and pairs is None


def _dict(obj: dict[Any, Any], level: Level) -> Anatomy:
    parts: list[Part] = []
    if not holds_leaves_only(obj.values()):
        parts = [Part(Place("item", k), v, level, f"[{_key(k)}]") for k, v in obj.items() if not is_leaf(v)]
    if not holds_leaves_only(obj):
        parts += [Part(Place("key", k), k, level, " key") for k in obj if not is_leaf(k)]
    if isinstance(obj, defaultdict) and not is_leaf(obj.default_factory):
        parts.append(Part(Place("attr", "default_factory"), obj.default_factory, Level.SHARED, ".default_factory"))
    return Anatomy(Kind.DICT, level > Level.SHARED, obj.copy(), parts)


def _list(obj: Any, level: Level) -> Anatomy:
    parts: list[Part] = []
    if not holds_leaves_only(obj):
        parts = [Part(Place("item", i), v, level, f"[{i}]") for i, v in enumerate(obj) if not is_leaf(v)]
    return Anatomy(Kind.LIST, level > Level.SHARED, obj.copy(), parts)


def _set(obj: set[Any], level: Level) -> Anatomy:
    return Anatomy(Kind.SET, level > Level.SHARED, obj.copy(), _members(obj, level))


def _tuple(obj: tuple[Any, ...], level: Level) -> Anatomy:
    parts = [Part(Place("item", i), v, level, f"[{i}]") for i, v in enumerate(obj) if not is_leaf(v)]
    return Anatomy(Kind.TUPLE, copied=False, snapshot=obj, parts=parts)


def _frozenset(obj: frozenset[Any], level: Level) -> Anatomy:
    return Anatomy(Kind.FROZENSET, copied=False, snapshot=obj, parts=_members(obj, level))


def _members(obj: set[Any] | frozenset[Any], level: Level) -> list[Part]:
    return [Part(Place("key", v), v, level, " member") for v in obj if not is_leaf(v)]


def _function(obj: types.FunctionType, _: Level) -> Anatomy:
    shared = Level.SHARED
    cells = zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=True)
    parts = [Part(Place("cell", i), cell, shared, f", closure variable {name}") for i, (name, cell) in enumerate(cells)]
    parts += [
        Part(Place("attr", name), value, shared, f", {label}")
        for name, label in _OF_FUNCTIONS.items()
        if (value := getattr(obj, name))
    ]
    parts += [
        Part(Place("global", name), value, shared, f", global {name}")
        for name, value in named_globals(obj)
        if not is_leaf(value)
    ]
    parts += [
        Part(Place("module", name), value, shared, f", {name}")
        for name, value in named_in_modules(obj)
        if not is_leaf(value)
    ]
    return Anatomy(Kind.FUNCTION, copied=False, snapshot=obj, parts=parts)


def _cell(obj: types.CellType, _: Level) -> Anatomy:
    try:
        contents = obj.cell_contents
    except ValueError:  # not filled yet
        return Anatomy(Kind.CELL, copied=False)
    parts = [] if is_leaf(contents) else [Part(Place("contents"), contents, Level.SHARED, "")]
    return Anatomy(Kind.CELL, copied=False, snapshot=contents, parts=parts)


def _method(obj: types.MethodType, _: Level) -> Anatomy:
    parts = [
        Part(Place("self"), obj.__self__, Level.SHARED, ", bound object"),
        Part(Place("func"), obj.__func__, Level.SHARED, ""),
    ]
    return Anatomy(Kind.METHOD, copied=False, snapshot=obj, parts=[part for part in parts if not is_leaf(part.value)])


def _builtin(obj: types.BuiltinMethodType, _: Level) -> Anatomy:
    bound = obj.__self__
    if bound is None or is_leaf(bound):
        return Anatomy(Kind.BUILTIN, copied=False)
    return Anatomy(Kind.BUILTIN, False, obj, [Part(Place("self"), bound, Level.SHARED, ", bound object")])  # noqa: FBT003 - a NamedTuple


def _partial(obj: functools.partial[Any], _: Level) -> Anatomy:
    shared = Level.SHARED
    parts = [
        Part(Place("func"), obj.func, shared, ", function"),
        Part(Place("args"), obj.args, shared, ", argument"),
        Part(Place("keywords"), obj.keywords, shared, ", argument"),
        Part(Place("attr", "__dict__"), vars(obj), shared, ", attribute"),
    ]
    return Anatomy(Kind.PARTIAL, copied=False, snapshot=obj, parts=[part for part in parts if not is_leaf(part.value)])


def _weakref(obj: weakref.ref[Any], _: Level) -> Anatomy:
    target = obj()
    parts = [] if target is None else [Part(Place("target"), target, Level.SHARED, ", weak reference", weak=True)]
    return Anatomy(Kind.WEAKREF, copied=False, snapshot=obj, parts=parts)


def _lock(obj: Any, level: Level) -> Anatomy:
    if level is Level.OWNED:
        return Anatomy(Kind.FRESH, copied=True, snapshot=_LOCKS[type(obj)])
    return Anatomy(Kind.OPAQUE, copied=False)


def _owned_instance(obj: Any) -> Anatomy:
    cls = type(obj)
    model_copy = getattr(cls, "__deepcopy__", None) is BaseModel.__deepcopy__
    if model_copy or is_plain(obj):
        return instance(obj, attribute(Level.OWNED), copied=True)
    if hasattr(cls, "__deepcopy__"):
        return _deepcopied(obj)
    return _reduced(obj)


def _deepcopied(obj: Any) -> Anatomy:
    # Its own way of copying is opaque, but the parts in plain sight may be agents, which it must find copied.
    held = vars(obj).items() if hasattr(obj, "__dict__") else ()
    parts = [Part(Place("seen", name), value, Level.SHARED, f".{name}") for name, value in held if not is_leaf(value)]
    return Anatomy(Kind.DEEPCOPIED, copied=True, snapshot=obj, parts=parts)


def _reduced(obj: Any) -> Anatomy:
    cls = type(obj)
    try:
        reducer = copyreg.dispatch_table.get(cls)
        made = reducer(obj) if reducer else obj.__reduce_ex__(4)
    except Exception as error:
        return Anatomy(Kind.OPAQUE, copied=True, refusal=f"cannot be copied ({error})")
    if isinstance(made, str):
        return Anatomy(Kind.OPAQUE, copied=False)
    function, args, state, items, pairs = (*made, None, None, None)[:5]
    stages = {"args": args, "state": state, "items": list(items or ()), "pairs": list(pairs or ())}
    parts = [Part(Place(name), value, Level.OWNED, "") for name, value in stages.items() if not is_leaf(value)]
    return Anatomy(Kind.REDUCED, copied=True, snapshot=(function, stages), parts=parts)


def _reached_instance(obj: Any) -> Anatomy:
    cls = type(obj)
    wraps = "__wrapped__" in getattr(obj, "__dict__", ())  # a cached function
    followed = wraps or cls is types.SimpleNamespace or not is_stdlib_type(cls)
    if not followed:
        return Anatomy(Kind.OPAQUE, copied=False)
    made = instance(obj, attribute(Level.SHARED), copied=False)
    if isinstance(obj, dict):
        made.parts.extend(_dict(obj, Level.SHARED).parts)
    elif isinstance(obj, list | set | deque):
        made.parts.extend(Part(Place("item"), value, Level.SHARED, " member") for value in obj if not is_leaf(value))
    if is_plain(obj) or getattr(cls, "__deepcopy__", None) is BaseModel.__deepcopy__:
        return made
    reason = "leads to an agent of the team and cannot be rebuilt around its copy"
    return made._replace(kind=Kind.OPAQUE, refusal=reason)


def _slots(obj: Any) -> Iterator[tuple[str, Any]]:
    for base in type(obj).__mro__:
        names = vars(base).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name in {"__dict__", "__weakref__"}:
                continue
            private = name.startswith("__") and not name.endswith("__")
            mangled = f"_{base.__name__.lstrip('_')}{name}" if private else name
            try:
                yield mangled, vars(base)[mangled].__get__(obj)
            except AttributeError:  # not set
                continue


def _key(key: Any) -> str:
    return repr(key) if isinstance(key, str | int) else str(getattr(key, "name", type(key).__name__))


_SIMPLE: dict[type, Callable[[Any, Level], Anatomy]] = {
    **dict.fromkeys(_DICTS, _dict),
    **dict.fromkeys(_LISTS, _list),
    set: _set,
    tuple: _tuple,
    frozenset: _frozenset,
    types.FunctionType: _function,
    types.CellType: _cell,
    types.MethodType: _method,
    types.BuiltinMethodType: _builtin,
    functools.partial: _partial,
    weakref.ref: _weakref,
}

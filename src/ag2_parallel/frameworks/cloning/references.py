"""Which module globals a function names.

Code written in a notebook or a script mostly names its agents as globals. Only functions of the user's own modules
are looked into: what libraries keep in their globals is no part of a team. An installed package counts as the
user's own if it uses AG2.
"""

from __future__ import annotations

import dis
import sys
import sysconfig
import types
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_AG2 = frozenset({"autogen", "ag2"})
_NEVER_USERS = _AG2 | {"ag2_parallel"}
_LIBRARY_FOLDERS = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class OverlaidGlobals(dict[str, Any]):
    """A module's globals with some names replaced, for one copy of the team.

    Other names are looked up in the module each time, so that later definitions are seen. What a function assigns
    with `global` stays here.
    """

    __slots__ = ("module_globals",)

    def __init__(self, module_globals: dict[str, Any]) -> None:
        """Lay nothing over `module_globals` yet."""
        super().__init__()
        self.module_globals = module_globals
        for name in ("__builtins__", "__name__"):
            if name in module_globals:
                self[name] = module_globals[name]

    def __missing__(self, name: str) -> Any:
        """Look the name up in the module."""
        return self.module_globals[name]


class _Names(NamedTuple):
    """The names in a function's code: globals it loads, modules it imports, and all names, attributes included."""

    loaded: frozenset[str]
    imported: frozenset[str]
    all: frozenset[str]


def named_globals(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals that a function of the user's own code names, with what they stand for now."""
    if not is_user_module(function.__module__):
        return
    module_globals = function.__globals__
    for name in sorted(_names(function.__code__).loaded):
        if name in module_globals:
            yield name, module_globals[name]


def named_in_modules(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function of the user's own code seems to take from other modules of the user's, as `module.name`.

    A module named by the function and one of the module's names in its code count, whether or not the one is taken
    from the other.
    """
    if not is_user_module(function.__module__):
        return
    names = _names(function.__code__)
    modules = [sys.modules[name] for name in sorted(names.imported) if name in sys.modules]
    modules += [value for _, value in named_globals(function) if isinstance(value, types.ModuleType)]
    for module in modules:
        if is_user_module(module.__name__):
            for name in sorted(names.all & vars(module).keys()):
                yield f"{module.__name__}.{name}", vars(module)[name]


def class_members(cls: type) -> Iterator[tuple[str, Any]]:
    """What the user's own classes among the bases of `cls` define, methods and properties as their functions."""
    for base in cls.__mro__:
        if is_user_module(base.__module__):
            for name, member in list(vars(base).items()):
                yield name, member.fget if isinstance(member, property) else getattr(member, "__func__", member)


@cache
def is_user_module(name: str | None) -> bool:
    """Whether a module is the user's own, and neither this package's, nor AG2's, nor a library's."""
    if name is None or name == "__main__":
        return True
    root = name.partition(".")[0]
    if root in _NEVER_USERS or root in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or not file.startswith(_LIBRARY_FOLDERS) or _uses_ag2(root)


@cache
def _uses_ag2(root: str) -> bool:
    return any(
        _comes_from_ag2(value)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == root and module is not None
        for value in list(vars(module).values())
    )


def _comes_from_ag2(value: object) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _AG2
    return isinstance(value, type | types.FunctionType) and (value.__module__ or "").startswith(("autogen.", "ag2."))


@lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> _Names:
    steps = list(dis.get_instructions(code))
    loaded = {step.argval for step in steps if step.opname in _LOADS}
    imported = {step.argval for step in steps if step.opname == "IMPORT_NAME"}
    named = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names(constant)
            loaded |= inner.loaded
            imported |= inner.imported
            named |= inner.all
    return _Names(frozenset(loaded), frozenset(imported), frozenset(named))

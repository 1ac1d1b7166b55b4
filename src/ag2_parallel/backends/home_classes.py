"""Classes without an import path, such as those of `__main__`: sent by value, known again when they come back.

cloudpickle sends such a class with all that it has, and where the same class is there already, what it has is
overwritten. On the way to a worker that is what keeps it up to date. On the way back it would put the worker's
attributes, methods and subclasses over the caller's own. So each class that is sent gets a number, and comes back as it.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import threading
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

import cloudpickle

_FIELDS: Final = 6
"""What the reduction of a class has that is sent by value; that of a class with another way has fewer."""

_MARKS: Final = {id(mark): name for name in ("MISSING", "KW_ONLY") if (mark := getattr(dataclasses, name))}
"""Of dataclasses, which know them by identity: by value they would not be the same any more."""

_lock: Final = threading.Lock()
_numbers: Final = itertools.count(1)
_sent: Final[WeakValueDictionary[int, type]] = WeakValueDictionary()
_number_of: Final[WeakKeyDictionary[type, int]] = WeakKeyDictionary()
_come: Final[WeakKeyDictionary[type, int]] = WeakKeyDictionary()
"""Classes that came from the process above, with their numbers there."""


def sent(value: Any) -> bytes:
    """`value` as bytes for a worker."""
    return _pickled(_Outward, value)


def sent_back(value: Any) -> bytes:
    """`value` as bytes for the process that this one is a worker of."""
    return _pickled(_Homeward, value)


def _pickled(pickler: type[cloudpickle.Pickler], value: Any) -> bytes:
    file = io.BytesIO()
    pickler(file, protocol=5).dump(value)
    return file.getvalue()


class _Outward(cloudpickle.Pickler):  # type: ignore[misc] # it has no types
    def reducer_override(self, obj: Any) -> Any:
        if id(obj) in _MARKS:
            return _MARKS[id(obj)]
        made = super().reducer_override(obj)
        if isinstance(obj, type) and isinstance(made, tuple) and len(made) == _FIELDS:
            return (_class_from_above, (_numbered(obj), *made[:2]), *made[2:])
        return made


class _Homeward(cloudpickle.Pickler):  # type: ignore[misc] # it has no types
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and (number := _come.get(obj)) is not None:
            return _own_class, (number,)
        if id(obj) in _MARKS:
            return _MARKS[id(obj)]
        return super().reducer_override(obj)


def _numbered(cls: type) -> int:
    with _lock:
        number = _number_of.get(cls)
        if number is None:
            number = _number_of[cls] = next(_numbers)
            _sent[number] = cls
        return number


def _class_from_above(number: int, make: Any, arguments: tuple[Any, ...]) -> Any:
    """In a worker: the class of that number, which has yet to get what it has."""
    cls = make(*arguments)
    with _lock:
        _come[cls] = number
    return cls


def _own_class(number: int) -> type:
    """In the process that sent it."""
    return _sent[number]

"""What is never copied and never looked into: values that cannot change, and services made to be shared."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import logging
import re
import sys
import threading
import types
import uuid
from contextvars import ContextVar
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any

import httpx
from pydantic import BaseModel

_ATOMIC: frozenset[type] = frozenset(
    {
        type(None),
        type(...),
        type(NotImplemented),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        range,
        slice,
        property,
        types.CodeType,
        types.MappingProxyType,
        types.GenericAlias,
        types.UnionType,
        dt.date,
        dt.datetime,
        dt.time,
        dt.timedelta,
        dt.timezone,
        decimal.Decimal,
        fractions.Fraction,
        uuid.UUID,
        re.Pattern,
        ContextVar,
    }
)

_LEAF_BASES = (
    type,
    types.ModuleType,
    Enum,
    PurePath,
    logging.Logger,
    logging.Handler,
    threading.Thread,
    httpx.Client,
    httpx.AsyncClient,
    httpx.BaseTransport,
)

_LEAF_PACKAGES = frozenset(
    {"annotated_types", "inspect", "openai", "pydantic", "pydantic_core", "typing", "typing_extensions"}
)


def is_leaf(value: Any) -> bool:
    """Whether `value` is shared by every copy and never looked into."""
    cls: type[object] = type(value)
    return cls in _ATOMIC or _is_leaf_type(cls)  # type: ignore[arg-type]  # mypy takes the hash of the instances


def holds_leaves_only(values: Any) -> bool:
    """Whether a container's values are all plain data; quick for long lists of numbers or strings."""
    return _ATOMIC.issuperset(map(type, values))


def is_stdlib_type(cls: type) -> bool:
    """Whether the standard library defines `cls`."""
    return cls.__module__.partition(".")[0] in sys.stdlib_module_names


@cache
def _is_leaf_type(cls: type) -> bool:
    if issubclass(cls, _LEAF_BASES):
        return True
    return cls.__module__.partition(".")[0] in _LEAF_PACKAGES and not issubclass(cls, BaseModel)

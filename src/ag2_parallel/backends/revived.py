"""Errors that were made in another process, to be raised in this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel import errors

if TYPE_CHECKING:
    from ag2_parallel.results import TaskError


def told(error: BaseException, kind: str = "agent") -> tuple[str, str, str]:
    """An error of this package as it crosses: type, message and kind."""
    return type(error).__name__, str(error), str(getattr(error, "kind", kind))


def told_of(error: TaskError) -> tuple[str, str, str]:
    """The same of an error that was read already."""
    return error.type, error.message, error.kind


def revived(error: tuple[str, str, str]) -> Exception:
    """The error again: of its own class where that is one of this package, else of one with the same name."""
    name, message, kind = error
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, errors.Ag2ParallelError) and known is not errors.RunFailedError:
        return known(message)
    made: Exception = type(name, (Exception,), {"kind": kind})(message)
    return made

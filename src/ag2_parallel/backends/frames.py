"""Messages as bytes: four of length, then the pickle of a list of messages.

Reading a frame makes nothing but messages and a few plain classes, so rubbish is an error and never code.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.backends import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEAD: Final = struct.Struct("!I")

LONGEST: Final = 1 << 30
"""Bytes; a frame that says it is longer is rubbish."""

_MESSAGES: Final = {name: message for name, message in vars(wire).items() if isinstance(message, type)}
_KINDS: Final = frozenset(_MESSAGES.values())

_PLAIN: Final = {
    "builtins": {"float", "int", "str"},
    "ag2_parallel.records": {"CallRecord"},
    "ag2_parallel.results": {"TaskError"},
    "ag2_parallel.usage": {"Usage"},
    "datetime": {"datetime", "timedelta", "timezone"},
}
"""What may come in a frame beside the messages and Python's own values."""


class WireError(Exception):
    """Raised where the other side says what is no message."""


class BrokenOffError(WireError):
    """Raised where the other side ended in the middle of a frame: it died while it spoke."""


class _Writer(pickle.Pickler):
    """Makes plain what only looks so: a text, or a number, of a class of the user's, such as a member of an enumeration."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, str | int | float):
            kind: Any = str if isinstance(obj, str) else int if isinstance(obj, int) else float
            return kind, kind.__getnewargs__(obj)
        return NotImplemented


class _Reader(pickle.Unpickler):
    """Makes messages, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        message = _MESSAGES.get(name)
        if message is not None and message.__module__ == module:
            return message
        if name not in _PLAIN.get(module, ()):
            raise WireError(f"{module}.{name} is no message")
        return super().find_class(module, name)


def packed(messages: Sequence[object]) -> bytes:
    """A frame of messages."""
    body = io.BytesIO()
    _Writer(body, protocol=5).dump(messages)
    return HEAD.pack(body.tell()) + body.getvalue()


def unpacked(body: bytes) -> list[Any]:
    """The messages of a frame, its head taken off.

    Raises:
        WireError: If they are none.
    """
    try:
        messages = _Reader(io.BytesIO(body)).load()
    except WireError:
        raise
    except Exception as error:
        raise WireError(f"a frame of {len(body)} bytes cannot be read: {error}") from error
    if not isinstance(messages, list) or not all(type(each) in _KINDS for each in messages):
        raise WireError(f"a frame of {len(body)} bytes holds no list of messages")
    return messages


def read_frame(read: Callable[[int], bytes]) -> list[Any] | None:
    """The next messages; None at the end. `read` gives so many bytes, fewer at the end alone.

    Raises:
        WireError: If the frame is none, or broken off.
    """
    head = read(HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise BrokenOffError("a frame broke off")
    (length,) = HEAD.unpack(head)
    if length > LONGEST:
        raise WireError(f"a frame says it is {length} bytes long")
    body = read(length)
    if len(body) < length:
        raise BrokenOffError("a frame broke off")
    return unpacked(body)

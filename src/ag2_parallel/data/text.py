"""Text of files: byte order marks, and bytes that are no text."""

from __future__ import annotations

import codecs
import io
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def marked_encoding(start: bytes) -> str | None:
    """The encoding that a byte order mark at the start of a file names."""
    return next((name for mark, name in _MARKS if start.startswith(mark)), None)


def as_text(binary: io.BufferedReader, encoding: str | None) -> TextIO:
    """A text stream over a file; line ends stay as they are.

    Args:
        binary: At its start.
        encoding: Where no byte order mark names one; None: UTF-8. Bytes that are not UTF-8 become lone surrogates,
            so that the rows around them can be read; `undecoded` finds them.
    """
    name = marked_encoding(binary.peek(4)) or encoding or "utf-8"
    errors = "surrogateescape" if name.startswith("utf-8") else "strict"
    return io.TextIOWrapper(binary, encoding=name, errors=errors, newline="")


def undecoded(text: str) -> str | None:
    """Which byte of a text was none of its encoding, or None."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        shown = f"byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"half of a surrogate pair, {code:#x},"
        return (
            f"{shown} at character {error.start + 1} is not UTF-8; save the file as UTF-8, or name its encoding, "
            'such as "cp1252"'
        )
    return None

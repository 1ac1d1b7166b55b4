"""Checksums of what is stored: a damaged row is an error, and never a wrong result."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def checksum(*parts: bytes | str | float | None) -> int:
    """One number for a row's values: CRC-32 of their types, lengths and contents."""
    told = ascii([(len(part), zlib.crc32(part)) if isinstance(part, bytes) else part for part in parts])
    return zlib.crc32(told.encode())


def row_checksum(columns: Sequence[Any]) -> int:
    """The same for columns that are all short; made for reading many rows."""
    return zlib.crc32(ascii(columns).encode())

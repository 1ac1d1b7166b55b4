"""Checksums of what is stored: a damaged row is an error, and never a wrong result."""

from __future__ import annotations

import zlib


def checksum(*parts: bytes | str | float | None) -> int:
    """One number for a row's values: CRC-32 of their types, lengths and contents."""
    told = ascii([(len(part), zlib.crc32(part)) if isinstance(part, bytes) else part for part in parts])
    return zlib.crc32(told.encode())

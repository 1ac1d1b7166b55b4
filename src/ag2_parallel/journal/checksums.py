"""Checksums of what is stored: a damaged row is an error, and never a wrong result."""

from __future__ import annotations

import json
import zlib


def checksum(*parts: bytes | str | float | None) -> int:
    """One number for a row's values: CRC-32 of their types, lengths and contents."""
    total = 0
    for part in parts:
        if isinstance(part, bytes):
            total = zlib.crc32(part, zlib.crc32(b"b%d:" % len(part), total))
        else:
            total = zlib.crc32(json.dumps(part).encode(), zlib.crc32(b"j", total))
    return total

"""Checksums of what is stored: a damaged row is an error, and never a wrong result."""

from __future__ import annotations

import json
import zlib
from typing import Final

_encoded: Final = json.JSONEncoder(separators=(",", ":")).encode


def checksum(*parts: bytes | str | float | None) -> int:
    """One number for a row's values: CRC-32 of the bytes among them, with their lengths, and of the rest as JSON."""
    total = 0
    rest: list[str | float | None] = []
    for part in parts:
        if isinstance(part, bytes):
            total = zlib.crc32(part, zlib.crc32(b"b%d:" % len(part), total))
            rest.append(None)
        else:
            rest.append(part)
    return zlib.crc32(_encoded(rest).encode(), total)

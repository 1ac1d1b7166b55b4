"""Results, headers, calls and events as bytes, and back.

JSON in UTF-8 with surrogates passed through, so that text of any kind comes back as it was; NaN and the infinities in
Python's own spelling. What JSON cannot hold is kept as text, circles end in a mark, and secrets are masked on the way.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.records import CallRecord, RunHeader
from ag2_parallel.results import ParallelTaskResult, plain
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.events import Event

    Mask = Callable[[str], str]

_COMPRESSED_FROM: Final = 32 * 1024
"""Bytes from which compressing pays: a result of 20 KB costs more processor time to compress than to write."""

_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_PACKED: Final = b"z"
_AS_IS: Final = b"j"
_TRIES: Final = 3

_NO_TRANSCRIPT: Final[dict[str, Any]] = {"chat_history": (), "console": "", "trace": ()}
_NO_WORDS: Final[dict[str, Any]] = {"output": None, "summary": None, "context": {}, "metadata": None}
_LEFT_OUT: Final[dict[str, dict[str, Any]]] = {
    "all": {},
    "summary": _NO_TRANSCRIPT,
    "none": _NO_TRANSCRIPT | _NO_WORDS,
}
"""What each value of `keep` leaves out, and what stands there instead."""


def text_bytes(text: str) -> bytes:
    """Text of any kind as bytes."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(data: bytes) -> str:
    """The text again."""
    return data.decode("utf-8", "surrogatepass")


def stored_text(text: str) -> str | bytes:
    """Text as a column holds it: as text, so that other programs can read it, or as bytes where SQLite refuses it."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text_bytes(text)
    return text


def read_text(stored: str | bytes) -> str:
    """The text again."""
    return bytes_text(stored) if isinstance(stored, bytes) else stored


def pack(data: bytes) -> bytes:
    """Bytes as they are stored: compressed where that pays."""
    if len(data) >= _COMPRESSED_FROM:
        packed = zlib.compress(data, 1)
        if len(packed) < len(data) * 0.9:
            return _PACKED + packed
    return _AS_IS + data


def unpack(data: bytes) -> bytes:
    """The bytes again."""
    return zlib.decompress(data[1:]) if data[:1] == _PACKED else data[1:]


def to_json(value: Any) -> bytes:
    """Plain data as JSON bytes."""
    return text_bytes(_JSON.encode(value))


def from_json(data: bytes) -> Any:
    """Plain data again."""
    return json.loads(bytes_text(data))


def encode_result(result: ParallelTaskResult, keep: str, mask: Mask) -> bytes:
    """A result as it is stored.

    A value that cannot be turned into plain data, or is being changed by code that still runs, does not lose the
    result: it is replaced by a sentence that says so.
    """
    left_out = _LEFT_OUT[keep]
    kept = replace(result, **left_out) if left_out else result
    for left in range(_TRIES, 0, -1):
        try:
            return pack(to_json(kept.to_dict(mask)))
        except RuntimeError as error:  # changed while it was looked at
            if left == 1:
                return _without_what_breaks(kept, mask, error)
        except Exception as error:
            return _without_what_breaks(kept, mask, error)
    raise AssertionError("the last try returns")


def _without_what_breaks(result: ParallelTaskResult, mask: Mask, error: Exception) -> bytes:
    said = mask(f"could not be stored: {type(error).__name__}: {error}")
    for name in ("output", "summary", "chat_history", "context", "metadata", "console"):
        try:
            to_json(plain(getattr(result, name), mask))
        except Exception:
            instead: Any = {"chat_history": (), "context": {"": said}}.get(name, said)
            result = replace(result, **{name: instead})
    return pack(to_json(result.to_dict(mask)))


def decode_result(data: bytes) -> ParallelTaskResult:
    """A result again; its values are plain data."""
    return ParallelTaskResult.from_dict(from_json(unpack(data)))


def encode_header(header: RunHeader, mask: Mask) -> bytes:
    """What explains a life of a run, as it is stored."""
    shown = {
        "options": header.options,
        "versions": header.versions,
        "platform": header.platform,
        "revision": header.revision,
        "source": header.source,
        "total": header.total,
    }
    return to_json(plain(shown, mask))


def decode_header(run_id: str, started_at: str, data: bytes) -> RunHeader:
    """It again."""
    return RunHeader(run_id=run_id, started_at=datetime.fromisoformat(started_at), **from_json(data))


def encode_call(record: CallRecord, mask: Mask) -> tuple[bytes, bytes]:
    """What there is to say about a call, and its answer, as they are stored."""
    about = {
        "status": record.status,
        "headers": record.headers,
        "streamed": record.streamed,
        "model": record.model,
        "endpoint": record.endpoint,
        "usage": record.usage.to_dict(),
        "duration": record.duration,
    }
    said = record.body.decode("utf-8", "surrogateescape")
    masked = mask(said)
    body = record.body if masked == said else masked.encode("utf-8", "surrogateescape")
    return to_json(plain(about, mask)), pack(body)


def decode_call(digest: str, about: bytes, body: bytes) -> CallRecord:
    """A call again."""
    stored = from_json(about)
    stored["headers"] = tuple((name, value) for name, value in stored["headers"])
    stored["usage"] = Usage.from_dict(stored["usage"])
    return CallRecord(digest=digest, body=unpack(body), **stored)


def encode_event(event: Event, mask: Mask) -> bytes:
    """An event as it is stored."""
    return pack(to_json(plain(event.to_dict(), mask)))

"""Results, headers, calls and events as bytes, and back.

JSON in UTF-8 with surrogates passed through, so that text of any kind comes back as it was; NaN and the infinities in
Python's own spelling. What JSON cannot hold is kept as text, circles end in a mark, and secrets are masked on the way.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pydantic_core

from ag2_parallel.records import CallRecord, RunHeader
from ag2_parallel.results import ParallelTaskResult, plain
from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
_OF_EVERY_EVENT: Final = frozenset({"type", "at", "run_id", "task"})

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
    try:
        return pydantic_core.to_json(value, inf_nan_mode="constants")  # the same bytes in a fifth of the time
    except pydantic_core.PydanticSerializationError:  # lone surrogates
        return text_bytes(_JSON.encode(value))


def masked_receipt(text: str, mask: Mask) -> str:
    """A receipt's JSON with the secrets of its value hidden; the same text where there are none."""
    try:
        receipt = json.loads(text)
    except ValueError:
        return mask(text)
    if not isinstance(receipt, dict):
        return text if plain(receipt, mask) == receipt else json.dumps(plain(receipt, mask))
    masked = {name: plain(value, mask) for name, value in receipt.items()}
    return text if masked == receipt else json.dumps(masked)


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
            return pack(to_json(_stored(kept, mask)))
        except RuntimeError as error:  # changed while it was looked at
            if left == 1:
                return _without_what_breaks(kept, mask, error)
        except BaseException as error:  # raised by a value that says what it is, on the journal's own thread
            return _without_what_breaks(kept, mask, error)
    raise AssertionError("the last try returns")


def _without_what_breaks(result: ParallelTaskResult, mask: Mask, error: BaseException) -> bytes:
    said = f"could not be stored: {type(error).__name__}"
    with suppress(BaseException):  # an error may not be able to say what it is
        said = mask(f"{said}: {error}")
    for name in ("output", "summary", "chat_history", "context", "metadata", "console"):
        try:
            to_json(plain(getattr(result, name), mask))
        except BaseException:  # the same
            instead: Any = {"chat_history": (), "context": {"": said}}.get(name, said)
            result = replace(result, **{name: instead})
    return pack(to_json(_stored(result, mask)))


def _stored(result: ParallelTaskResult, mask: Mask) -> dict[str, Any]:
    """Whose result it is stays as it is: by its name a task is found again."""
    return result.to_dict(mask) | {"name": result.name, "group": result.group}


def decode_result(data: bytes) -> ParallelTaskResult:
    """A result again; its values are plain data."""
    return ParallelTaskResult.from_dict(from_json(unpack(data)))


def encode_header(header: RunHeader, mask: Mask) -> bytes:
    """What explains a life of a run, as it is stored."""
    shown = {
        "options": plain(header.options, mask),
        "versions": plain(header.versions, str),
        "platform": header.platform,
        "revision": header.revision,
        "source": _source(header.source, mask),
        "total": header.total,
    }
    return to_json(shown)


def _source(source: Mapping[str, Any] | None, mask: Mask) -> Any:
    """What finds the tasks again, as it is: masked, it would find none or others. Where a prompt in it has a secret, nothing."""
    rows = (source or {}).get("rows") or {}
    words = [text for name in ("prompt", "name") if isinstance(text := rows.get(name), str)]
    return None if any(mask(text) != text for text in words) else plain(source, str)


def decode_header(run_id: str, started_at: str, data: bytes) -> RunHeader:
    """It again."""
    return RunHeader(run_id=run_id, started_at=datetime.fromisoformat(started_at), **from_json(data))


def encode_call(record: CallRecord, mask: Mask) -> tuple[bytes, bytes]:
    """What there is to say about a call, and its answer, as they are stored."""
    about = {
        "status": record.status,
        "headers": [(name, mask(value)) for name, value in record.headers],
        "streamed": record.streamed,
        "model": None if record.model is None else mask(record.model),
        "endpoint": mask(record.endpoint),
        "usage": record.usage.to_dict(mask),
        "duration": record.duration,
    }
    said = record.body.decode("utf-8", "surrogateescape")
    masked = mask(said)
    body = record.body if masked == said else masked.encode("utf-8", "surrogateescape")
    return to_json(about), pack(body)


def decode_call(digest: str, about: bytes, body: bytes) -> CallRecord:
    """A call again."""
    stored = from_json(about)
    stored["headers"] = tuple((name, value) for name, value in stored["headers"])
    stored["usage"] = Usage.from_dict(stored["usage"])
    return CallRecord(digest=digest, body=unpack(body), **stored)


def encode_event(event: Event, mask: Mask) -> bytes:
    """An event as it is stored."""
    shown = event.to_dict()
    return pack(
        to_json({name: plain(value, str if name in _OF_EVERY_EVENT else mask) for name, value in shown.items()})
    )

"""Bodies with keys masked, for what is stored of them: JSON stays JSON, events stay events."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.gate.off_loop import off_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ag2_parallel.redaction import Redactor

_ON_THE_LOOP: Final = 64 * 1024
_DATA: Final = "data:"
_PIECES: Final = frozenset(
    {"content", "reasoning_content", "reasoning", "arguments", "text", "thinking", "partial_json", "delta"}
)
"""What the pieces of a streamed text are called."""
_PIECE: Final = re.compile(rf'"(?:{"|".join(sorted(_PIECES))})"\s*:\s*"((?:[^"\\]|\\.)*)"')


def masked_body(body: bytes, redactor: Redactor) -> bytes:
    """The body with every text in it masked; the same bytes where there is nothing to mask."""
    text = body.decode("utf-8", "surrogateescape")
    masked = redactor.text(text)
    if masked == text and not _in_pieces(text, redactor):  # most bodies have nothing in them, and are not taken apart
        return body
    try:
        return _masked(text, redactor).encode()
    except UnicodeEncodeError:  # it is of another encoding, or damaged
        return masked.encode("utf-8", "surrogateescape")


async def masked_soon(body: bytes, redactor: Redactor, spawn: Callable[[Callable[[], None]], None]) -> bytes:
    """The same from the engine loop: on a thread, where it takes a while or a user's function has a word in it."""
    if len(body) <= _ON_THE_LOOP and not redactor.asks_user:
        return masked_body(body, redactor)
    return await off_loop(spawn, lambda: masked_body(body, redactor))


def _in_pieces(text: str, redactor: Redactor) -> bool:
    """Whether a stream says something secret in several pieces."""
    if not (text.startswith(_DATA) or f"\n{_DATA}" in text):
        return False
    joined = "".join(_PIECE.findall(text))
    return redactor.text(joined) != joined


def _masked(text: str, redactor: Redactor) -> str:
    # A mark that ends at a quote's backslash would break the JSON around it, so values are masked, not their source.
    whole = _parsed(text)
    if whole is not None:
        return json.dumps(redactor.value(whole))
    lines = text.split("\n")
    events = {
        at: event
        for at, line in enumerate(lines)
        if line.startswith(_DATA) and (event := _parsed(line[len(_DATA) :])) is not None
    }
    _mask_across(list(events.values()), redactor)
    shown = (
        f"{_DATA} {json.dumps(redactor.value(events[at]))}" if at in events else redactor.text(line)
        for at, line in enumerate(lines)
    )
    return "\n".join(shown)


def _mask_across(events: list[Any], redactor: Redactor) -> None:
    """Where the pieces of a text have a secret together, the first gets the masked text and the others nothing."""
    pieces: dict[tuple[Any, ...], list[tuple[dict[str, Any], str]]] = {}
    for event in events:
        for path, holder, name in _texts(event, ()):
            pieces.setdefault(path, []).append((holder, name))
    for places in pieces.values():
        joined = "".join(holder[name] for holder, name in places)
        masked = redactor.text(joined)
        if masked != joined:
            for holder, name in places:
                holder[name], masked = masked, ""


def _texts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any], str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, str) and name in _PIECES:
                yield (*path, name), value, name
            elif isinstance(item, dict | list):
                yield from _texts(item, (*path, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, (*path, at))


def _parsed(text: str) -> Any:
    """What a JSON text says; None for another text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None

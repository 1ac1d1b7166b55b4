"""Bodies with keys masked, for what is stored of them: JSON stays JSON, events stay events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ag2_parallel.gate.off_loop import off_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.redaction import Redactor

_ON_THE_LOOP: Final = 64 * 1024
_DATA: Final = "data:"


def masked_body(body: bytes, redactor: Redactor) -> bytes:
    """The body with every text in it masked; the same bytes where there is nothing to mask."""
    text = body.decode("utf-8", "surrogateescape")
    masked = redactor.text(text)
    if masked == text:  # most bodies have nothing in them, and are not taken apart to find that
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


def _masked(text: str, redactor: Redactor) -> str:
    # A mark that ends at a quote's backslash would break the JSON around it, so values are masked, not their source.
    whole = _masked_json(text, redactor)
    if whole is not None:
        return whole
    return "\n".join(_masked_line(line, redactor) for line in text.split("\n"))


def _masked_line(line: str, redactor: Redactor) -> str:
    if line.startswith(_DATA):
        data = _masked_json(line[len(_DATA) :], redactor)
        if data is not None:
            return f"{_DATA} {data}"
    return redactor.text(line)


def _masked_json(text: str, redactor: Redactor) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return json.dumps(redactor.value(value))

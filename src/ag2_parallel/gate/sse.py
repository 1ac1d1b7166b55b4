"""Server-sent events as they pass: the usage block found, and taken out where the client did not ask for it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_END_OF_EVENT: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_USAGE: Final = re.compile(rb'"usage"\s*:\s*\{')
_TEXT: Final = re.compile(
    rb'"(?:content|reasoning_content|arguments|text|delta|refusal)"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL
)
_NO_CHOICES: Final = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_FILTERED: Final = re.compile(rb'"finish_reason"\s*:\s*"content_filter')
_DONE: Final = re.compile(rb"(?m)^data:\s*\[DONE\]|^event:\s*(?:response\.completed|message_stop)\b")
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")

_LONGEST_EVENT: Final = 8 * 2**20
"""An "event" past this is none: its bytes pass on unread, and memory stays bounded."""


class EventStream:
    """Watches the events of one streamed answer.

    Attributes:
        usage: The last usage block seen, as the provider wrote it.
        text_length: Bytes of generated text seen so far, for an estimate where no usage block comes.
        done: Whether the answer said that it is complete.
    """

    def __init__(self, *, strip_usage: bool) -> None:
        """`strip_usage` takes out the event that carries nothing but usage: the gate asked for it, not the client."""
        self.usage: dict[str, Any] | None = None
        self.text_length = 0
        self.done = False
        self._filter_seen = False
        self._strip = strip_usage
        self._pending = b""

    @property
    def filtered(self) -> bool:
        """Whether the provider's content filter ended the answer before it said anything."""
        return self._filter_seen and self.text_length == 0

    def feed(self, chunk: bytes) -> bytes:
        """Take what came; the bytes for the client, which may be none yet."""
        self._pending += chunk
        passed = self._whole_events()
        if len(self._pending) > _LONGEST_EVENT:
            passed.append(self._pending)
            self._pending = b""
        return b"".join(passed) if self._strip else chunk

    def finish(self) -> bytes:
        """What is left at the end of the stream."""
        rest, self._pending = self._pending, b""
        keep = self._read(rest)
        return rest if self._strip and keep else b""

    def _whole_events(self) -> list[bytes]:
        passed = []
        start = 0
        # Searched from the front each time: events are short and arrive nearly whole.
        for end in _END_OF_EVENT.finditer(self._pending):
            event = self._pending[start : end.end()]
            if self._read(event):
                passed.append(event)
            start = end.end()
        self._pending = self._pending[start:]
        return passed

    def _read(self, event: bytes) -> bool:
        """Note what the event says; whether the client gets it."""
        for found in _TEXT.finditer(event):
            self.text_length += len(found[1])
        if _DONE.search(event):
            self.done = True
        if _FILTERED.search(event):
            self._filter_seen = True
        if not _USAGE.search(event):
            return True
        usage = _usage_of(event)
        if usage is None:
            return True
        self.usage = usage
        return not (self._strip and _NO_CHOICES.search(event))


def begins_events(start: bytes) -> bool:
    """Whether the first bytes of an answer may be those of events, whatever its content type says."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    return any(text.startswith(field) or field.startswith(text) for field in _FIELDS)


def _usage_of(event: bytes) -> dict[str, Any] | None:
    data = b"\n".join(line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:"))
    return usage_block(parsed_object(data or event))  # without data lines it may be plain JSON, asked as a stream


def parsed_object(text: bytes) -> dict[str, Any] | None:
    """A JSON object, or None where the text is none."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def usage_block(answer: Any) -> dict[str, Any] | None:
    """The usage block of a parsed answer: at its top, or in the `response` of a Responses API event."""
    if not isinstance(answer, dict):
        return None
    usage = answer.get("usage")
    if isinstance(usage, dict):
        return usage
    response = answer.get("response")
    return usage_block(response) if isinstance(response, dict) else None

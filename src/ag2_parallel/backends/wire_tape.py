"""In a child: an attempt's tape, which is in the parent."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Protocol

from ag2_parallel.backends import wire
from ag2_parallel.backends.revived import revived

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.records import CallRecord

_LOOK = 0.05
"""Seconds between two looks at the stop signal while a record is asked for."""


class Sends(Protocol):
    """The wire, as far as it is needed here."""

    def send(self, message: object, /) -> None:
        """Send a message."""


class WireTape:
    """`records.DistantTape`. An attempt asks for records until there is none; then it is live, and asks no more."""

    def __init__(self, key: wire.Key, link: Sends, check: Callable[[], None]) -> None:
        """`check` raises where the attempt has to end; on its thread."""
        self._key = key
        self._link = link
        self._check = check
        self._numbers = itertools.count(1)
        self._live = False
        self._fetched: dict[str, deque[CallRecord]] = defaultdict(deque)
        self._asked: dict[int, _Reply] = {}
        self._kept: dict[int, Callable[[], None]] = {}

    def fetch(self, digest: str) -> None:
        """See `records.DistantTape`."""
        if self._live:
            return
        number, reply = next(self._numbers), _Reply()
        self._asked[number] = reply
        self._link.send(wire.Find(self._key, number, digest))
        while not reply.there.wait(_LOOK):
            self._check()
        if reply.error is not None:
            raise revived(reply.error)
        if reply.record is None:
            self._live = True
        else:
            self._fetched[digest].append(reply.record)

    def find(self, digest: str) -> CallRecord | None:
        """See `records.CallTape`."""
        fetched = self._fetched.get(digest)
        return fetched.popleft() if fetched else None

    def keep(self, record: CallRecord, kept: Callable[[], None]) -> None:
        """See `records.CallTape`."""
        number = next(self._numbers)
        self._kept[number] = kept
        self._link.send(wire.Keep(self._key, number, record))

    def told(self, message: Any) -> None:
        """The parent answered; on the loop."""
        if isinstance(message, wire.Kept):
            self._kept.pop(message.number)()
        elif (reply := self._asked.pop(message.number, None)) is not None:
            reply.record, reply.error = message.record, message.error
            reply.there.set()


class _Reply:
    """What the parent has for a request."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.record: CallRecord | None = None
        self.error: tuple[str, str, str] | None = None

"""In a child: the effects of a task, which are written down in the parent."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Protocol

from ag2_parallel.backends import wire
from ag2_parallel.backends.revived import revived
from ag2_parallel.records import Receipt

if TYPE_CHECKING:
    from ag2_parallel.records import Receipts


class Sends(Protocol):
    """The wire, as far as it is needed here."""

    def send(self, message: object, /) -> None:
        """Send a message."""


class WireReceipts:
    """The effects of one run's tasks."""

    def __init__(self, run: str, link: Sends) -> None:
        self._run = run
        self._link = link
        self._numbers = itertools.count(1)
        self._asked: dict[int, _Reply] = {}

    def of(self, task: str) -> Receipts:
        """Those of a task, by its name."""
        return _TaskReceipts(self, task)

    def ask(self, task: str, step: str, key: str, value: str = "") -> str | None:
        """Have the parent do a step, and wait until it is safe. Blocking; raises what the step raises."""
        number, reply = next(self._numbers), _Reply()
        self._asked[number] = reply
        self._link.send(wire.Effect(self._run, number, task, step, key, value))
        reply.there.wait()  # the parent answers in any case, or it is gone and this process with it
        if reply.error is not None:
            raise revived(reply.error)
        return reply.value

    def told(self, message: wire.EffectTold) -> None:
        """The parent answered; on the loop."""
        reply = self._asked.pop(message.number, None)
        if reply is not None:
            reply.value, reply.error = message.value, message.error
            reply.there.set()


class _Reply:
    def __init__(self) -> None:
        self.there = threading.Event()
        self.value: str | None = None
        self.error: tuple[str, str, str] | None = None


class _TaskReceipts:
    """`records.Receipts`."""

    def __init__(self, receipts: WireReceipts, task: str) -> None:
        self._receipts = receipts
        self._task = task

    def begin(self, key: str) -> Receipt | None:
        value = self._receipts.ask(self._task, "begin", key)
        return None if value is None else Receipt(value)

    def finish(self, key: str, value: str) -> None:
        self._receipts.ask(self._task, "finish", key, value)

    def withdraw(self, key: str) -> None:
        self._receipts.ask(self._task, "withdraw", key)

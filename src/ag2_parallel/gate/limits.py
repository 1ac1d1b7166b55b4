"""What can hold a call up: each limit answers when a call may go, and is told what became of it.

All are functions of their state, of what a call needs, and of the time they are told.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ag2_parallel.gate.rate import AT_ONCE, NOT_KNOWN, Pacer


class Need(NamedTuple):
    """What a call takes from limits: `tokens` in all, `sure` of them in any case (those of its prompt)."""

    tokens: int = 0
    sure: int = 0


NOTHING = Need()


class Limit:
    """A limit without limits; the others say where they differ.

    Attributes:
        name: What a reader is told.
        waiters: How many calls in the queue want it.
    """

    __slots__ = ("_queued", "name", "waiters")

    patience: ClassVar[float] = NOT_KNOWN
    """Seconds that a call waits for it where its task has no limit."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiters = 0
        self._queued: dict[int, int] = {}

    def ready_at(self, need: Need, now: float) -> float:
        """When a call may go as far as this limit goes: in the past, in the future, or `NOT_KNOWN`."""
        return AT_ONCE

    def not_before(self, need: Need, priority: int, now: float) -> float:
        """The earliest time at which a call that joins the queue now can possibly go."""
        return AT_ONCE

    def earliest(self, need: Need) -> float:
        """The earliest time at which the first of the queue can possibly go."""
        return AT_ONCE

    def kept_for(self, need: Need) -> float:
        """Seconds for which it is kept free for a call that waits for another limit: by so much others delay it."""
        return 0.5

    def cost(self, need: Need) -> int:
        """What a call in the queue is sure to take before those behind it."""
        return 1

    def queue(self, need: Need, priority: int, sign: int) -> None:
        """A call joins (1) or leaves (-1) the queue."""
        self.waiters += sign
        self._queued[priority] = self._queued.get(priority, 0) + sign * self.cost(need)

    def ahead(self, priority: int) -> int:
        """What those in the queue before a new call of this priority are sure to take."""
        return sum(cost for other, cost in self._queued.items() if other >= priority)

    def take(self, need: Need, now: float) -> None:
        """A call goes."""

    def undo(self, need: Need) -> None:
        """A call that was let go was not sent after all."""

    def done(self, need: Need, used: int | None, now: float) -> None:
        """A call that was let go has ended; it used so many tokens, or nobody knows."""


class RequestLimit(Limit):
    """So many requests a second."""

    __slots__ = ("pacer",)

    def __init__(self, name: str, rate: float) -> None:
        super().__init__(name)
        self.pacer = Pacer(rate, unit=1.0)

    def ready_at(self, need: Need, now: float) -> float:
        return self.pacer.ready_at(1.0)

    def kept_for(self, need: Need) -> float:
        return 1 / self.pacer.rate

    def not_before(self, need: Need, priority: int, now: float) -> float:
        return max(now, self.earliest(need)) + self.ahead(priority) / self.pacer.rate

    def earliest(self, need: Need) -> float:
        return self.pacer.ready_at(1.0)

    def take(self, need: Need, now: float) -> None:
        self.pacer.take(1.0, now)

    def undo(self, need: Need) -> None:
        self.pacer.give_back(1.0)


class TokenLimit(Limit):
    """So many tokens a second: reserved by an estimate, corrected by what the answer says."""

    __slots__ = ("_may_come_back", "pacer")

    def __init__(self, name: str, rate: float) -> None:
        super().__init__(name)
        self.pacer = Pacer(rate)
        self._may_come_back = 0

    def ready_at(self, need: Need, now: float) -> float:
        return self.pacer.ready_at(need.tokens)

    def kept_for(self, need: Need) -> float:
        return need.tokens / self.pacer.rate

    def not_before(self, need: Need, priority: int, now: float) -> float:
        return max(now, self.earliest(need)) + self.ahead(priority) / self.pacer.rate

    def earliest(self, need: Need) -> float:
        return self.pacer.ready_at(need.tokens) - self._may_come_back / self.pacer.rate

    def cost(self, need: Need) -> int:
        return need.sure

    def take(self, need: Need, now: float) -> None:
        self.pacer.take(need.tokens, now)
        self._may_come_back += need.tokens - need.sure

    def undo(self, need: Need) -> None:
        self.pacer.give_back(need.tokens)
        self._may_come_back -= need.tokens - need.sure

    def done(self, need: Need, used: int | None, now: float) -> None:
        self._may_come_back -= need.tokens - need.sure
        if used is None:
            return
        if used < need.tokens:
            self.pacer.give_back(need.tokens - used)
        else:
            self.pacer.take(used - need.tokens, now)


class SlotLimit(Limit):
    """So many calls at once."""

    __slots__ = ("_busy", "_slots")

    def __init__(self, name: str, slots: int) -> None:
        super().__init__(name)
        self._slots = slots
        self._busy = 0

    def ready_at(self, need: Need, now: float) -> float:
        return AT_ONCE if self._busy < self._slots else NOT_KNOWN

    def take(self, need: Need, now: float) -> None:
        self._busy += 1

    def undo(self, need: Need) -> None:
        self._busy -= 1

    def done(self, need: Need, used: int | None, now: float) -> None:
        self._busy -= 1

"""What a model server saw: every request, how it ended, and how many were open at once."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

RequestStatus: TypeAlias = Literal["in_flight", "answered", "cut", "fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequest:
    """One request, as it was when the ledger was asked.

    Attributes:
        number: Its place, from 0.
        at: When it had arrived whole, on the monotonic clock.
        finished_at: When it ended; None while it is in flight.
        body: Its JSON body; empty where it was not JSON.
        model: The model asked for.
        text: Text of the last user message.
        status: `in_flight`, `answered`, `cut` (the client went away before the answer was whole) or `fault`
            (a scripted fault, a refused request, or the server was closed).
        http_status: The status sent, if one was.
        usage: Prompt and completion tokens of the usage block, if one was sent whole.
        error: What the user's reply function raised, if it did.
    """

    number: int
    at: float
    finished_at: float | None = None
    body: dict[str, Any]
    model: str | None = None
    text: str = ""
    status: RequestStatus = "in_flight"
    http_status: int | None = None
    usage: tuple[int, int] | None = None
    error: str | None = None


class Ledger:
    """What a `ModelServer` saw. Safe from any thread; read it at any time.

    A request counts as answered from the moment its last bytes are handed to the system, so a client that
    has its answer finds it counted.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._requests: list[SeenRequest] = []
        self._counts = _no_counts()
        self._peak_in_flight = 0
        self._connections = 0
        self._peak_connections = 0
        self._tokens = 0
        self._era = 0

    @property
    def requests(self) -> list[SeenRequest]:
        """Every request, in the order of arrival."""
        with self._changed:
            return list(self._requests)

    @property
    def count(self) -> int:
        """Requests seen."""
        with self._changed:
            return len(self._requests)

    @property
    def answered(self) -> int:
        """Requests whose answer was sent whole."""
        return self._counts["answered"]

    @property
    def cut(self) -> int:
        """Requests whose client went away before the answer was whole."""
        return self._counts["cut"]

    @property
    def faults(self) -> int:
        """Requests that ended in a fault."""
        return self._counts["fault"]

    @property
    def in_flight(self) -> int:
        """Requests that have not ended."""
        return self._counts["in_flight"]

    @property
    def peak_in_flight(self) -> int:
        """The most requests in flight at once."""
        return self._peak_in_flight

    @property
    def connections(self) -> int:
        """Connections open now."""
        return self._connections

    @property
    def peak_connections(self) -> int:
        """The most connections open at once."""
        return self._peak_connections

    @property
    def tokens_sent(self) -> int:
        """Prompt and completion tokens of all usage blocks that were sent whole."""
        return self._tokens

    def wait_for(self, predicate: Callable[[Ledger], object], timeout: float = 10.0) -> bool:
        """Wait until `predicate(ledger)` is true; False if it is not within `timeout` seconds."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: predicate(self), timeout))

    def reset(self) -> None:
        """Start anew: numbers from 0, all counts 0. Requests in flight are forgotten; open connections stay counted."""
        with self._changed:
            self._era += 1
            self._requests.clear()
            self._counts = _no_counts()
            self._tokens = self._peak_in_flight = 0
            self._peak_connections = self._connections
            self._changed.notify_all()

    def summary(self) -> dict[str, int]:
        """The counts as plain data."""
        with self._changed:
            return {
                "count": len(self._requests),
                "in_flight": self.in_flight,
                "answered": self.answered,
                "cut": self.cut,
                "faults": self.faults,
                "peak_in_flight": self._peak_in_flight,
                "connections": self._connections,
                "peak_connections": self._peak_connections,
                "tokens_sent": self._tokens,
            }

    def begin(self, body: dict[str, Any], *, model: str | None = None, text: str = "") -> Entry:
        """Note a request that arrived; for the server."""
        with self._changed:
            number = len(self._requests)
            self._requests.append(SeenRequest(number=number, at=time.monotonic(), body=body, model=model, text=text))
            self._counts["in_flight"] += 1
            self._peak_in_flight = max(self._peak_in_flight, self._counts["in_flight"])
            self._changed.notify_all()
            return Entry(self, number, self._era)

    def connection_opened(self) -> None:
        """Note a connection; for the server."""
        with self._changed:
            self._connections += 1
            self._peak_connections = max(self._peak_connections, self._connections)
            self._changed.notify_all()

    def connection_closed(self) -> None:
        """Note the end of a connection; for the server."""
        with self._changed:
            self._connections -= 1
            self._changed.notify_all()

    def settle(self, entry: Entry, status: RequestStatus, changes: dict[str, Any]) -> None:
        """Note how a request ended. An answer found cut while it was sent is corrected. For the server."""
        with self._changed:
            if entry.era != self._era:
                return
            before = self._requests[entry.number]
            after = replace(before, status=status, finished_at=time.monotonic(), **changes)
            self._requests[entry.number] = after
            self._counts[before.status] -= 1
            self._counts[status] += 1
            self._tokens += sum(after.usage or ()) - sum(before.usage or ())
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Entry:
    """The server's hand on one request of a ledger."""

    ledger: Ledger
    number: int
    era: int

    def answered(self, http_status: int, usage: tuple[int, int] | None) -> None:
        """The answer's last bytes are about to be sent."""
        self.ledger.settle(self, "answered", {"http_status": http_status, "usage": usage})

    def fault(self, http_status: int | None, error: str | None = None) -> None:
        """The request ends in a fault."""
        self.ledger.settle(self, "fault", {"http_status": http_status, "error": error})

    def cut(self) -> None:
        """The client went away."""
        self.ledger.settle(self, "cut", {"usage": None})


def _no_counts() -> dict[RequestStatus, int]:
    return {"in_flight": 0, "answered": 0, "cut": 0, "fault": 0}

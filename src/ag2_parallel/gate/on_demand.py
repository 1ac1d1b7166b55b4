"""The gate, loaded when the first model call needs it: a run without models imports no HTTP library."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from ag2_parallel.usage import Usage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Mapping

    import httpx

    from ag2_parallel.async_ports import SendChatSoon
    from ag2_parallel.gate.budget import TaskSpending
    from ag2_parallel.gate.gate import Gate
    from ag2_parallel.gate.limiter import Limiter
    from ag2_parallel.ports import AttemptGate, Clock, SendChat

T = TypeVar("T")

_CLOSING_TIME = 3.0


class SharedGate:
    """The one gate of an engine, made when it is first asked for. Safe from any thread."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        post: Callable[[Callable[[], None]], None],
        spawn: Callable[[Callable[[], None]], None],
        clock: Clock,
        limiter: Callable[[], Limiter] | None = None,
    ) -> None:
        """See `Gate`; `limiter` makes its limiter."""
        self._make = (loop, post, spawn, clock)
        self._limiter = limiter
        self._lock = threading.Lock()
        self._gate: Gate | None = None

    def get(self) -> Gate:
        """The gate."""
        from ag2_parallel.gate.gate import Gate

        with self._lock:
            if self._gate is None:
                self._gate = Gate(*self._make, limiter=None if self._limiter is None else self._limiter())
            return self._gate

    def close(self, call: Callable[..., Any]) -> None:
        """Close the gate, if there is one; `call` runs a coroutine on its loop."""
        if self._gate is not None:
            call(self._gate.close(), _CLOSING_TIME)


class GateOnDemand:
    """One attempt's gate: `ports.AttemptGate`, opened with the first client it is asked for."""

    __slots__ = ("_cut", "_lock", "_of_all", "_open", "_own", "_shared", "_spending")

    def __init__(
        self,
        shared: SharedGate,
        of_all: Mapping[str, Any],
        own: Callable[[], dict[str, Any]],
        spending: TaskSpending | None = None,
    ) -> None:
        """The parts of `Gate.open_attempt`: those that all attempts share, what makes the attempt's own, its account."""
        self._shared = shared
        self._of_all = of_all
        self._own = own
        self._spending = spending
        self._lock = threading.Lock()
        self._open: AttemptGate | None = None
        self._cut: str | None = None

    def http_client(
        self, *, last_entry: bool = True, price: tuple[float, float] | None = None, through: httpx.Client | None = None
    ) -> httpx.Client:
        """See `ports.AttemptGate`."""
        return self._opened().http_client(last_entry=last_entry, price=price, through=through)

    def async_http_client(
        self, *, last_entry: bool = True, price: tuple[float, float] | None = None, through: Any = None
    ) -> Any:
        """See `ports.AttemptGate`."""
        return self._opened().async_http_client(last_entry=last_entry, price=price, through=through)

    def foreign_call(self, work: Callable[[], T], **terms: Any) -> T:
        """See `ports.AttemptGate`."""
        answer: T = self._opened().foreign_call(work, **terms)
        return answer

    async def foreign_call_soon(self, work: Callable[[], Coroutine[Any, Any, T]], **terms: Any) -> T:
        """See `ports.AttemptGate`."""
        answer: T = await self._opened().foreign_call_soon(work, **terms)
        return answer

    @property
    def filtered(self) -> bool:
        """See `ports.AttemptGate`."""
        return self._open is not None and self._open.filtered

    def chat_sender(
        self, like: httpx.Request, *, last_entry: bool = True, price: tuple[float, float] | None = None
    ) -> SendChat:
        """See `ports.AttemptGate`."""
        return self._opened().chat_sender(like, last_entry=last_entry, price=price)

    def async_chat_sender(
        self, like: Any, *, last_entry: bool = True, price: tuple[float, float] | None = None
    ) -> SendChatSoon:
        """See `ports.AttemptGate`."""
        return self._opened().async_chat_sender(like, last_entry=last_entry, price=price)

    def _opened(self) -> AttemptGate:
        with self._lock:
            if self._open is None:
                self._open = self._shared.get().open_attempt(**self._of_all, **self._own(), spending=self._spending)
                if self._cut is not None:
                    self._open.cut(self._cut)
            return self._open

    def usage(self) -> Usage:
        """See `ports.AttemptGate`."""
        return Usage() if self._open is None else self._open.usage()

    def waited(self) -> float:
        """See `ports.AttemptGate`."""
        return 0.0 if self._open is None else self._open.waited()

    def cut(self, reason: str) -> None:
        """See `ports.AttemptGate`."""
        with self._lock:
            self._cut = reason
            gate = self._open
        if gate is not None:
            gate.cut(reason)

    @property
    def was_cut(self) -> bool:
        """Whether a call in flight was cut."""
        return bool(getattr(self._open, "was_cut", False))

"""A second copy of a slow call: when it is sent, and which of the two counts.

Only chat completions that leave nothing behind on the server are sent twice: no stream, nothing
stored, no tool that the server itself runs, and nothing that goes through a user's own client, where the loser
could not be cut. A copy takes its place before the limits like any call, but never waits: where the limits
do not let it through at once, it is not sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from ag2_parallel.gate.failure import was_sent
from ag2_parallel.gate.sse import parsed_object, usage_block

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from ag2_parallel.gate.meter import CallTally
    from ag2_parallel.gate.wire import Head

T = TypeVar("T")

_ERROR: Final = 400
_REMEMBERED: Final = 200
_ENOUGH: Final = 20
"""Answers from which a percentile can be told."""

_PERCENTILE: Final = 0.95
_STATELESS: Final = ("/chat/completions", "/messages")
_LEAVES_SOMETHING: Final = ("store", "background", "container", "mcp_servers", "web_search_options")
_RUN_BY_THE_CALLER: Final = frozenset({"function", "custom"})


class AnswerTimes:
    """How long answers took, by endpoint and model."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str | None], deque[float]] = {}

    def note(self, endpoint: str, model: str | None, seconds: float) -> None:
        """An answer took so long."""
        self._seconds.setdefault((endpoint, model), deque(maxlen=_REMEMBERED)).append(seconds)

    def hedge_after(self, wish: float | Literal["p95"] | None, endpoint: str, model: str | None) -> float | None:
        """Seconds after which a copy is sent; None: it is not, or it is not yet known when."""
        if wish != "p95":
            return wish
        known = self._seconds.get((endpoint, model), ())
        return sorted(known)[int(len(known) * _PERCENTILE)] if len(known) >= _ENOUGH else None


def may_be_sent_twice(path: str, body: Mapping[str, Any]) -> bool:
    """Whether a request leaves nothing behind on the server."""
    if not path.endswith(_STATELESS) or body.get("stream") or any(body.get(name) for name in _LEAVES_SOMETHING):
        return False
    tools = body.get("tools")
    if not isinstance(tools, list):
        return not tools
    # Anthropic's own way to describe a caller's tool has no type.
    return all(isinstance(tool, dict) and tool.get("type", "custom") in _RUN_BY_THE_CALLER for tool in tools)


def is_good(head: Head | None) -> bool:
    """Whether an answer is one; None: it is a stream, which is on its way."""
    return head is None or head.status < _ERROR


def count_beside(end: Head | BaseException | None, tally: CallTally, estimate: Callable[[int], int]) -> None:
    """Count the one of two requests that does not count as the answer; what a server refused is not charged for."""
    if isinstance(end, BaseException):
        if was_sent(end):
            tally.unreport(estimate(0))
    elif end is not None and end.status < _ERROR:
        body = end.body or b""
        tally.answer(usage_block(parsed_object(body)), lambda: estimate(len(body)))


async def first_good(
    send: Callable[[], Coroutine[Any, Any, T]],
    copy: Callable[[], Coroutine[Any, Any, T] | None],
    after: float,
    good: Callable[[T], bool],
) -> list[T | BaseException]:
    """What a request and its copy came to: the first good answer, else the request's own end; then the other's.

    An end is an answer, or the exception in its place: `CancelledError` for the one that is cut because the
    other was good.

    Args:
        send: Sends the request.
        copy: Sends the copy; None if it may not be sent.
        after: Seconds until the copy is sent.
        good: Whether an answer is one.
    """
    racing: list[asyncio.Future[T]] = [asyncio.ensure_future(send())]
    chosen = racing[0]
    try:
        await asyncio.wait(racing, timeout=after)
        if not racing[0].done() and (second := copy()) is not None:
            racing.append(asyncio.ensure_future(second))
            chosen = await _first(racing, good) or chosen
        else:
            await asyncio.wait(racing)
    finally:
        await _ended(racing)
    return [_end(each) for each in (chosen, *(other for other in racing if other is not chosen))]


async def _first(racing: list[asyncio.Future[T]], good: Callable[[T], bool]) -> asyncio.Future[T] | None:
    """The first that is answered well, None if none is."""
    pending = set(racing)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for each in racing:
            if each in done and each.exception() is None and good(each.result()):
                return each
    return None


def _end(one: asyncio.Future[Any]) -> Any:
    if one.cancelled():
        return asyncio.CancelledError()
    return one.exception() or one.result()


async def _ended(racing: list[asyncio.Future[T]]) -> None:
    """Cancel those that still run, and see them end: their connections are closed then."""
    for each in racing:
        each.cancel()
    waiting: list[Awaitable[T]] = [*racing]
    await asyncio.gather(*waiting, return_exceptions=True)

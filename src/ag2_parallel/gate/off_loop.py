"""Blocking work of the gate itself, done on a daemon thread while the loop goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ag2_parallel.gate.sse import parsed_object

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_PARSED_ON_THE_LOOP: Final = 256 * 1024
"""Longer answers are parsed on a thread, so that one of them does not hold all the others."""


async def off_loop(
    spawn: Callable[[Callable[[], None]], None],
    work: Callable[[], T],
    *,
    late: Callable[[T | None], None] | None = None,
) -> T:
    """What `work` returns or raises. Cancelling stops the waiting; the thread comes back by itself.

    Not `loop.run_in_executor`: its threads are joined when the interpreter exits, and a name
    server that never answers would hold the exit.

    Args:
        spawn: Runs a blocking function on a daemon thread.
        work: The blocking function.
        late: Told the result (None for an error), on a thread, where nobody waits for it any more.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.done():
            if late is not None:
                spawn(lambda: late(result))
        elif error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type] # without an error it is what `work` returned

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(tell, result, error)
        except RuntimeError:  # the loop is closed
            if late is not None:
                late(result)

    spawn(run)
    return await done


async def parsed_soon(spawn: Callable[[Callable[[], None]], None], body: bytes) -> dict[str, Any] | None:
    """A JSON object, or None where the body is none; long ones are parsed on a thread."""
    return (
        parsed_object(body) if len(body) <= _PARSED_ON_THE_LOOP else await off_loop(spawn, lambda: parsed_object(body))
    )

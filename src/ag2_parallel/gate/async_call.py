"""The async front of a call: made on an attempt's private loop, done on the engine loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ag2_parallel.gate.async_relay import AsyncRelay

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.call import Call
    from ag2_parallel.gate.request import ModelRequest
    from ag2_parallel.gate.terms import Terms
    from ag2_parallel.gate.wire import Head


async def begun(attempt: GatedAttempt, request: ModelRequest, terms: Terms) -> tuple[Head, AnswerBytes]:
    """The head of an answer; where it has no body, the bytes that follow.

    Cancelling it cuts the call on the engine loop.

    Raises:
        TaskStopped: Once the attempt has to end.
        httpx.HTTPError: What came in place of an answer.
    """
    attempt.side.owner.check_call()
    relay = AsyncRelay(attempt.shared.post, asyncio.get_running_loop())
    call = attempt.call(request, terms, relay)
    answer = AnswerBytes(attempt, call, relay)
    try:
        attempt.begin(call.start)
        head: Head = await relay.receive()
    except BaseException:
        answer.hang_up()  # whatever it was, also a cancellation: nobody waits for the call any more
        raise
    if head.body is not None:
        answer.over = True
    return head, answer


class AnswerBytes:
    """The bytes of an answer as they arrive.

    Attributes:
        over: Whether there is nothing to hang up: the end has come, or was not waited for.
    """

    def __init__(self, attempt: GatedAttempt, call: Call, relay: AsyncRelay) -> None:
        self.over = False
        self._attempt = attempt
        self._call = call
        self._relay = relay

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Await the next bytes, to the end. Raises httpx exceptions."""
        while (chunk := await self._relay.receive()) is not None:
            yield chunk
        self.over = True

    def hang_up(self) -> None:
        """Leave the answer; where it is not at its end the connection is closed."""
        if not self.over:
            self.over = True
            self._attempt.post(self._call.hang_up)  # with the engine, the connection is gone too

    def __del__(self) -> None:
        """An answer that was dropped half read would hold its connection for ever."""
        self.hang_up()

"""The gate of an engine: one pool, one table of prices, and an access for each attempt."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from ag2_parallel.gate.attempt_gate import AttemptSide, GatedAttempt, Shared
from ag2_parallel.gate.hedging import AnswerTimes
from ag2_parallel.gate.pool import Pool
from ag2_parallel.gate.prices import PriceTable
from ag2_parallel.gate.turnstile import Turnstile
from ag2_parallel.gate.wishes import NO_LIMITS, CallLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.call import Call
    from ag2_parallel.policies import RetryPolicy
    from ag2_parallel.ports import Clock
    from ag2_parallel.redaction import Redactor


def _to_nobody(_name: str, _seconds: float) -> None:
    """Nobody counts what is waited for."""


class Gate:
    """Where every model call passes; one for each engine, kept over its runs."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        post: Callable[[Callable[[], None]], None],
        spawn: Callable[[Callable[[], None]], None],
        clock: Clock,
        rng: random.Random | None = None,
    ) -> None:
        """Tie the gate to an engine.

        Args:
            loop: The engine loop, running in another thread than the workers.
            post: Runs a function on that loop, soon; cheap and safe from any thread.
            spawn: Runs a blocking function on a daemon thread.
            clock: Where time comes from.
            rng: Where the jitter of waits comes from; None: the system.
        """
        self._closed = False
        self._pool = Pool(spawn)
        self._calls: set[Call] = set()
        self._shared = Shared(
            loop=loop,
            post=post,
            spawn=spawn,
            clock=clock,
            draw=(rng or random.SystemRandom()).random,
            pool=self._pool,
            prices=PriceTable(),
            no_usage=set(),
            turnstile=Turnstile(loop, clock),
            answer_times=AnswerTimes(),
            calls=self._calls,
            closed=lambda: self._closed,
        )

    def open_attempt(  # noqa: PLR0913 - all that an attempt and the gate have to do with each other
        self,
        *,
        retry: RetryPolicy,
        redactor: Redactor,
        remaining: Callable[[], float | None],
        check_call: Callable[[], None],
        alive: Callable[[], None],
        waiting: Callable[[bool], None],
        emit: Callable[..., None],
        observed: Callable[[], bool],
        limits: CallLimits = NO_LIMITS,
        group: str | None = None,
        priority: int = 0,
        waited_for: Callable[[str, float], None] = _to_nobody,
    ) -> GatedAttempt:
        """An attempt's access; safe from any thread.

        Args:
            retry: How often each model call is tried.
            redactor: Masks what an error shows of an answer.
            remaining: Seconds that a call may wait, None: without end; called on the loop.
            check_call: Called in the worker's thread before each call; raises `TaskStopped` to refuse it.
            alive: Told, on the loop, that something of an answer arrived.
            waiting: Told, on the loop, that the attempt begins (True) or ends (False) to wait for a limit or a next try.
            emit: Takes an event's class and fields, on the loop.
            observed: Whether anybody listens to events.
            limits: What the run wants of the gate.
            group: The task's group, for limits that name one.
            priority: The task's; higher goes first where calls wait.
            waited_for: Told, on the loop, for which limit a call waited, and how many seconds.
        """
        side = AttemptSide(
            retry=retry,
            redactor=redactor,
            remaining=remaining,
            check_call=check_call,
            alive=alive,
            waiting=waiting,
            emit=emit,
            observed=observed,
            limits=limits,
            group=group,
            priority=priority,
            waited_for=waited_for,
        )
        return GatedAttempt(self._shared, side)

    async def close(self) -> None:
        """Cut what is left and close every connection; on the engine loop. Nothing can be called afterwards."""
        self._closed = True
        calls = list(self._calls)
        for call in calls:
            call.cut("cancelled")
        await asyncio.gather(*(call.task for call in calls if call.task is not None), return_exceptions=True)
        await self._pool.close()

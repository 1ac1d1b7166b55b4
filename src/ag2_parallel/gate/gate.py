"""The gate of an engine: one pool, one table of prices, and an access for each attempt."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from ag2_parallel.gate.attempt_gate import GatedAttempt, Shared
from ag2_parallel.gate.attempt_side import AttemptSide
from ag2_parallel.gate.hedging import AnswerTimes
from ag2_parallel.gate.pool import Pool
from ag2_parallel.gate.prices import PriceTable
from ag2_parallel.gate.turnstile import Turnstile

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.call import Call
    from ag2_parallel.gate.foreign_call import ForeignCall
    from ag2_parallel.gate.limiter import Limiter
    from ag2_parallel.ports import Clock


class Gate:
    """Where every model call passes; one for each engine, kept over its runs."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        post: Callable[[Callable[[], None]], None],
        spawn: Callable[[Callable[[], None]], None],
        clock: Clock,
        rng: random.Random | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        """Tie the gate to an engine.

        Args:
            loop: The engine loop, running in another thread than the workers.
            post: Runs a function on that loop, soon; cheap and safe from any thread.
            spawn: Runs a blocking function on a daemon thread.
            clock: Where time comes from.
            rng: Where the jitter of waits comes from; None: the system.
            limiter: Where calls wait for limits; None: a turnstile of its own.
        """
        self._closed = False
        self._pool = Pool(spawn)
        self._calls: set[Call | ForeignCall] = set()
        self._shared = Shared(
            loop=loop,
            post=post,
            spawn=spawn,
            clock=clock,
            draw=(rng or random.SystemRandom()).random,
            pool=self._pool,
            prices=PriceTable(),
            no_usage=set(),
            turnstile=limiter or Turnstile(loop),
            answer_times=AnswerTimes(),
            calls=self._calls,
            closed=lambda: self._closed,
        )

    def open_attempt(self, **parts: Any) -> GatedAttempt:
        """An attempt's access; safe from any thread. `parts` are those of `AttemptSide`."""
        return GatedAttempt(self._shared, AttemptSide(**parts))

    async def close(self) -> None:
        """Cut what is left and close every connection; on the engine loop. Nothing can be called afterwards."""
        self._closed = True
        calls = list(self._calls)
        for call in calls:
            call.cut("cancelled")
        await asyncio.gather(*(call.task for call in calls if call.task is not None), return_exceptions=True)
        await self._pool.close()

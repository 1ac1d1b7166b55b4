"""Five hundred calls that wait for limits, alone in a process: writes the longest time that kept the loop busy, in seconds.

It is the processor time of the loop's thread between two turns of a task that wants every turn, so other processes do not count.
"""

import asyncio
import gc
import sys
import time

from ag2_parallel.gate.limits import Need
from ag2_parallel.gate.routes import Routes
from ag2_parallel.gate.turnstile import Turnstile
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.policies import RateLimit

WAITERS = 500


class Request:
    """What limits need to know of a call."""

    endpoint, headers = "https://host", ()

    def __init__(self, model):
        self.model = model

    def estimated_tokens(self):
        return 10

    def answer_cap(self):
        return None


async def trial():
    turnstile = Turnstile(asyncio.get_running_loop())
    limits = CallLimits(
        (
            RateLimit(concurrent=50),
            RateLimit(requests=2000, per=1),
            RateLimit(tokens=1e6),
            RateLimit(concurrent=5, model="m1"),
        ),
        adaptive=True,
    )
    routes: Routes = turnstile.routes
    longest = 0.0

    async def call(number):
        way = routes.way(Request(f"m{number % 3}"), limits, f"group {number % 4}", number % 5)
        ticket = turnstile.ask(way, Need(20, 10), None)
        await turnstile.wait(ticket)
        await asyncio.sleep(0.001)
        way.pace.went_through(ticket.since, turnstile.now())
        way.window.went_through()
        turnstile.done(ticket, 15)

    async def watch():
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    watcher = asyncio.ensure_future(watch())
    calls = [asyncio.ensure_future(call(number)) for number in range(WAITERS)]
    for each in calls[: WAITERS // 10]:
        each.cancel()
    done = await asyncio.gather(*calls, return_exceptions=True)
    watcher.cancel()
    assert [each for each in done if each is not None and not isinstance(each, asyncio.CancelledError)] == []
    return longest


if __name__ == "__main__":
    gc.collect()
    sys.stdout.write(str(asyncio.run(trial())))

"""Tools with effects, and what an attempt makes of them."""

import asyncio

from attempt_harness import Attempts

from ag2_parallel import once

happened: list[object] = []


@once
def send(to: str, text: str = "hi") -> str:
    """Send a message."""
    happened.append((to, text))
    return f"sent {len(happened)}"


@once
async def send_async(to: str) -> str:
    await asyncio.sleep(0)
    happened.append(to)
    return f"sent {len(happened)}"


class Noted:
    """`records.Receipts` that notes the keys it is asked for."""

    def __init__(self):
        self.keys = []

    def begin(self, key):
        self.keys.append(key)

    def finish(self, key, value):
        """Forgotten."""

    withdraw = begin


def keys_of(attempt):
    noted = Noted()
    with Attempts() as attempts:
        attempts.run(run=attempt, receipts=noted)
    return noted.keys


def stopped(attempt, receipts):
    """The error that the attempt makes its task fail with."""
    with Attempts() as attempts:
        made = attempts.made(run=attempt, receipts=receipts)
        made.listener.attempt_cut_off = lambda _index, _attempt, error: setattr(made, "told", error)
        made.run()
        return made.told

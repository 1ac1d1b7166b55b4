"""Event loops of the package's own threads."""

from __future__ import annotations

import asyncio
import sys


def own_event_loop() -> asyncio.AbstractEventLoop:
    """A new loop of asyncio's own making, whatever the program that we are a part of has as its policy.

    Other loops differ in small things that matter here: what a timer tells of itself, how exact the clock is.
    """
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    return asyncio.SelectorEventLoop()

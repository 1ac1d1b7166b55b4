"""A run as a loop over its events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ag2_parallel.events import RunFinished
from ag2_parallel.streaming import clean_up, end_run, leased, uncancelled, wake_up

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from ag2_parallel.assembly import ActiveRun
    from ag2_parallel.core.event_tap import EventTap
    from ag2_parallel.events import Event
    from ag2_parallel.machinery import Lease
    from ag2_parallel.run_results import RunResults

    Checked = Callable[[ActiveRun, RunResults], RunResults]


def event_stream(active: ActiveRun, tap: EventTap, lease: Callable[[], Lease], checked: Checked) -> Iterator[Event]:
    """Start a run and yield its events; leaving early stops it and waits until nothing of it is left."""
    held = lease()
    try:
        active.start(held.machinery)
        while (event := tap.wait()) is not None:
            yield event
            if isinstance(event, RunFinished):
                break
    finally:
        tap.close()
        end_run(active, held)
    checked(active, active.results(active.take_results()))


async def async_event_stream(
    active: ActiveRun, tap: EventTap, lease: Callable[[], Lease], checked: Checked
) -> AsyncGenerator[Event, None]:
    """The same on the caller's loop."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    tap.on_change(lambda: wake_up(loop, changed.set))
    held = await leased(lease)
    feeding = active.start(held.machinery)
    try:
        finished = False
        while not finished:
            changed.clear()
            while (event := tap.take()) is not None:
                yield event
                finished = finished or isinstance(event, RunFinished)
            if not finished:
                await changed.wait()
    finally:
        tap.close()
        await uncancelled(clean_up(active, held, feeding))
    checked(active, active.results(active.take_results()))

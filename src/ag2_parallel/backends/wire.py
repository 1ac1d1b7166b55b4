"""The messages between a run's process and a process, or node, in which its attempts run.

Theory of operation
===================

The schedule, the limits and everything that is written down stay with the parent. A child has the same
engine, workers and gate, and asks the parent where those of a whole run are concerned:

    parent                                       child
      Hello, OpenRun, Start ──────────────────►  an attempt begins
      Granted, Queued, Denied, Revoked ◄──────►  Ask, Done, Passed, GaveUp, Throttled, HeadersCame
      OverBudget ◄────────────────────────────►  Charged, RefusedCall
      Found, Kept ◄───────────────────────────►  Find, Keep                 (model calls on record)
      EffectTold ◄────────────────────────────►  Effect                     (effects that happen once)
      Answered ◄──────────────────────────────►  Asked                      (a question to a person)
      Stop, Insist ───────────────────────────►
               ◄──────────────────────────────   Alive, Progress, Waits, LifeSign, CutOff, Happened, Learnt, Logged
               ◄──────────────────────────────   Ended                      (the attempt is over)
      CloseRun, Quit ─────────────────────────►

Messages are plain (see `frames`). What a user made (a task, an output) is in `bytes` of its own, made and read by
`crossing` away from any loop.
"""

from __future__ import annotations

from typing import Final

from ag2_parallel.backends.orders import (
    Answered,
    CloseRun,
    Denied,
    EffectTold,
    Found,
    Granted,
    Hello,
    Insist,
    Kept,
    Key,
    OpenRun,
    OverBudget,
    Queued,
    Quit,
    Revoked,
    Start,
    Stop,
)
from ag2_parallel.backends.reports import (
    Alive,
    Ask,
    Asked,
    Charged,
    CutOff,
    Done,
    Effect,
    Ended,
    Find,
    GaveUp,
    Happened,
    HeadersCame,
    Keep,
    Learnt,
    LifeSign,
    Logged,
    Passed,
    Progress,
    Ready,
    RefusedCall,
    RunBroke,
    RunClosed,
    Throttled,
    WaitedFor,
    Waits,
)

__all__ = [
    "VERSION",
    "Alive",
    "Answered",
    "Ask",
    "Asked",
    "Charged",
    "CloseRun",
    "CutOff",
    "Denied",
    "Done",
    "Effect",
    "EffectTold",
    "Ended",
    "Find",
    "Found",
    "GaveUp",
    "Granted",
    "Happened",
    "HeadersCame",
    "Hello",
    "Insist",
    "Keep",
    "Kept",
    "Key",
    "Learnt",
    "LifeSign",
    "Logged",
    "OpenRun",
    "OverBudget",
    "Passed",
    "Progress",
    "Queued",
    "Quit",
    "Ready",
    "RefusedCall",
    "Revoked",
    "RunBroke",
    "RunClosed",
    "Start",
    "Stop",
    "Throttled",
    "WaitedFor",
    "Waits",
]

VERSION: Final = 2
"""Both sides must have the same."""

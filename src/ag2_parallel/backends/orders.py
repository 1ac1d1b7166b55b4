"""What a parent says to a child; see `wire`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag2_parallel.backends.message import message

if TYPE_CHECKING:
    from ag2_parallel.records import CallRecord


@message
class Key:
    """Names an attempt."""

    run: str
    index: int
    attempt: int


@message
class Hello:
    """The first message: what the child's process should look like.

    Attributes:
        version: Of the messages.
        path: Where the parent imports from.
        directory: Its working folder; None: the child keeps its own.
        environment: Its environment variables; None: the child keeps its own, and of its import path what it has.
    """

    version: int
    path: tuple[str, ...]
    directory: str | None
    environment: dict[str, str] | None


@message
class OpenRun:
    """What all attempts of a run need; before the first of them."""

    run: str
    payload: bytes


@message
class Start:
    """Run an attempt.

    Attributes:
        key: Names it.
        payload: The task, and the results it depends on.
        remaining: Seconds left to its limit; None: no limit.
        watched: Whether signs of life are waited for.
        recorded: Whether its model calls are written down.
    """

    key: Key
    payload: bytes
    remaining: float | None
    watched: bool
    recorded: bool


@message
class Stop:
    """Raise the stop signal in an attempt."""

    key: Key
    reason: str


@message
class Insist:
    """The grace of an attempt is used up."""

    key: Key


@message
class Granted:
    """The limits let a call go; `held_by` is what it waited for. A `standing` permit serves one call after another."""

    ticket: int
    held_by: str | None = None
    standing: bool = False


@message
class Revoked:
    """A standing permit serves no further call."""

    ticket: int


@message
class Queued:
    """A call waits."""

    ticket: int


@message
class Denied:
    """The limits do not let a call go in time; it could go in `wait` seconds at the earliest."""

    ticket: int
    held_by: str
    wait: float


@message
class OverBudget:
    """The budget of a run, or of one task of it, is used up."""

    run: str
    index: int | None
    message: str


@message
class Found:
    """The record that was asked for; None: there is none, or what stands against it: type, message and kind of an error."""

    key: Key
    number: int
    record: CallRecord | None
    error: tuple[str, str, str] | None = None


@message
class Kept:
    """A call is written down."""

    key: Key
    number: int


@message
class EffectTold:
    """What is known of an effect: `value` of its receipt, if there is one, or an error: type, message and kind."""

    run: str
    number: int
    value: str | None
    error: tuple[str, str, str] | None = None


@message
class Answered:
    """The answer to a question, or why there is none: type, message and kind of an error."""

    run: str
    number: int
    text: str | None
    error: tuple[str, str, str] | None = None


@message
class CloseRun:
    """A run is over."""

    run: str


@message
class Quit:
    """The process is not needed any more."""

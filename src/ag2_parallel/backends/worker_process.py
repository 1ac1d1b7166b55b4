"""One worker process as the parent sees it: its wire, what runs in it, how it ends."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ag2_parallel.backends import wire
from ag2_parallel.backends.crossing import Unreadable, in_words, loaded, unpacked_left
from ag2_parallel.backends.link import Link
from ag2_parallel.backends.starting import import_path

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ag2_parallel.backends.flights import Flight
    from ag2_parallel.ports import Answer

_log = logging.getLogger("ag2_parallel")

_SILENCE = 1.0
"""Seconds without a heartbeat after which a process is taken to be unable to answer."""

_FULL = 0.9
"""The share of its memory past which a process takes nothing new."""

_LAST_WORDS = 1.0
"""Seconds after a process ended, or hung up, in which the other of the two should be known too."""


class Post(Protocol):
    """Runs a function on the engine loop, soon; from any thread."""

    def __call__(self, function: Callable[[], None], /) -> None:
        """Take it."""


class WorkerProcess:
    """A worker process. Its methods are called on the loop.

    Attributes:
        flights: The attempts in it.
        runs: The runs it knows.
        started: How many attempts were started in it.
        draining: Whether it takes nothing new.
        alone: Whether it is kept for one attempt at a time.
        ready: Whether it has said that it runs.
        why: What it is killed for, or None.
    """

    def __init__(
        self,
        start: Callable[[socket.socket, Callable[[str], None]], Callable[[], None]],
        *,
        loop: asyncio.AbstractEventLoop,
        post: Post,
        spawn: Callable[[Callable[[], None]], None],
        heard: Callable[[WorkerProcess, Any, Any], None],
        died: Callable[[WorkerProcess, str], None],
        elsewhere: bool = False,
    ) -> None:
        """Start it; that takes a moment, in which it can be sent to.

        Args:
            start: Starts a process; see `Starter.start`.
            loop: The engine loop.
            post: Runs a function on it.
            spawn: Runs a blocking function on a thread.
            heard: Told each message, with what was packed in it; on the loop.
            died: Told once why it ended, on the loop.
            elsewhere: See `Starter.elsewhere`.
        """
        self.flights: dict[wire.Key, Flight] = {}
        self.runs: set[str] = set()
        self.started = 0
        self.draining = False
        self.alone = False
        self.ready = False
        self.why: str | None = None
        self._elsewhere = elsewhere
        self._start = start
        self._loop = loop
        self._post = post
        self._heard = heard
        self._died = died
        self._kill: Callable[[], None] | None = None
        self._exit: str | None = None
        self._hung_up = False
        self._told = False
        self._heard_at = time.monotonic() + _SILENCE
        ours, self._theirs = socket.socketpair()
        self._link = Link(ours, spawn)
        directory, environment = (None, None) if elsewhere else (_working_directory(), dict(os.environ))
        self._link.send(wire.Hello(wire.VERSION, tuple(import_path()), directory, environment))
        spawn(self._live)

    def send(self, message: object) -> None:
        """Send a message, or what a function makes; see `Link.send`."""
        self._link.send(message)

    @property
    def late(self) -> bool:
        """Whether it is still on its way to existence, where that takes its time."""
        return self._elsewhere and not self.ready

    @property
    def silent(self) -> bool:
        """Whether its engine does not turn."""
        return time.monotonic() - self._heard_at > _SILENCE

    def has_memory(self, size: int, most: int | None) -> None:
        """It has so many bytes; `most` are those it may have, None: as many as it wants."""
        if most is None or size < _FULL * most:
            return
        self.draining = True
        if not self.flights:
            self.quit()
        elif size > most:
            had, limit = (f"{each / 1e6:,.0f} MB" for each in (size, most))
            self.kill(f"was killed: it had {had} of memory, and max_memory is {limit}")

    def kill(self, why: str) -> None:
        """End it now."""
        if self.why is None:
            self.why = why
        if self._kill is not None and self._exit is None:
            self._kill()
        self._link.hang_up()

    def quit(self) -> None:
        """Let it end: it has nothing to do any more."""
        self.draining = True
        self._link.send(wire.Quit())
        self._link.close()

    # ---- on its thread

    def _live(self) -> None:
        try:
            with self._theirs:
                self._kill = self._start(self._theirs, self._exited)
        except Exception as error:
            self.why = f"could not be started ({error})"
            self._exited(self.why)
            self._link.hang_up()
        else:
            if self.why is not None:  # killed before it was born
                self.kill(self.why)
        try:
            for batch in self._link.messages():
                self._heard_at = time.monotonic()
                self._post(partial(self._deliver, [(each, _opened(each)) for each in batch]))
        except Exception as error:
            self._post(partial(self.kill, f"said what nobody understands ({error})"))
        self._post(self._hang_up)

    def _exited(self, what: str) -> None:
        self._post(partial(self._exit_known, what))

    # ---- on the loop

    def _deliver(self, messages: list[tuple[Any, Any]]) -> None:
        for message, inside in messages:
            if self._told:
                return
            try:
                self._heard(self, message, inside)
            except Exception:  # a mistake of ours must end an attempt, never hang it
                _log.exception("internal error of ag2-parallel in a message of a worker process, please report this")
                self.kill(f"was killed because what it said ({type(message).__name__}) could not be dealt with")

    def _hang_up(self) -> None:
        self._hung_up = True
        self._look()

    def _exit_known(self, what: str) -> None:
        self._exit = what
        self._look()

    def _look(self) -> None:
        """It is over when it has hung up and its exit code is known; neither waits long for the other."""
        if self._hung_up and self._exit is not None:
            self._over()
        else:
            self._loop.call_later(_LAST_WORDS, self._over)

    def _over(self) -> None:
        if self._told:
            return
        self._told = True
        self.kill("hung up")  # whatever is left of it
        self._died(self, self._exit if self.why == "hung up" and self._exit is not None else self.why or "")


def _working_directory() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return None


def _opened(message: object) -> Any:
    """What users' code made, taken out of a message; on the reading thread, since it runs such code."""
    if isinstance(message, wire.Progress):
        with contextlib.suppress(BaseException):  # of a class that is not here: the rest counts
            return unpacked_left(message.left)
    elif isinstance(message, wire.Ended):
        return _opened(message.progress), _answer(message.answer)
    return None


def _answer(data: bytes | None) -> Answer | Unreadable | None:
    try:
        answer: Answer | None = None if data is None else loaded(data)
    except BaseException as error:  # whatever it raises: this thread hears the other attempts, too
        return Unreadable(in_words(error))
    return answer

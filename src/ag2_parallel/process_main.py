"""A worker process: the same engine, workers and gate as in the caller's process, joined for the other end of the wire.

::

    main thread                engine thread                        worker threads
    reads the wire ──post──►   LocalBackend ─► Attempt ─────────►   the task's code
                               gate ─► Leases ─► wire
    wire ◄── what attempts have, every tenth of a second, and at their end
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ag2_parallel.backends import wire
from ag2_parallel.backends.fork_server import ForkServer, die_with, ignore_interrupts
from ag2_parallel.backends.link import Link
from ag2_parallel.backends.reporting_back import LogForwarder
from ag2_parallel.gate.leases import Leases
from ag2_parallel.machinery import Machinery
from ag2_parallel.process_tasks import ChildRun

if TYPE_CHECKING:
    import asyncio

    from ag2_parallel.gate.leases import RemoteCourse
    from ag2_parallel.gate.limits import Need

_HEARTBEAT = 0.25
_NEWS = 0.1
"""Seconds between two looks at what attempts have."""

_CLOSING_TIME = 2.0


def main(arguments: dict[str, Any]) -> None:
    """The entry of an interpreter that the parent started; never returns."""
    ignore_interrupts()
    if arguments.get("shared"):
        sock = socket.fromshare(sys.stdin.buffer.read())  # type: ignore[attr-defined] # Windows
    else:
        sock = socket.socket(fileno=arguments["fd"])
    if arguments["role"] == "server":
        load(preload=arguments["preload"])
        ForkServer(sock, arguments["parent"], work).serve()
    else:
        if "parent" in arguments:
            die_with(arguments["parent"])
        work(sock)
    os._exit(0)


def load(*, preload: bool) -> None:
    """Import what workers will need, so that they have it from the start; AG2 Classic where it is to be preloaded."""
    import ag2_parallel.assembly
    import ag2_parallel.gate.gate  # noqa: F401 - loaded once for all

    if preload:
        from ag2_parallel.frameworks.registry import Frameworks

        Frameworks(None).preload()


def work(sock: socket.socket) -> None:
    """Be a worker process until the parent needs it no more, or has gone; never returns."""
    WorkerMain(sock).live()
    os._exit(0)


class WorkerMain:
    """One worker, which has a process of its own."""

    def __init__(self, sock: socket.socket) -> None:
        """Start the engine and say so."""
        self._machinery = Machinery(self._make_leases)
        self._machinery.engine.ended = _cut_off
        self._leases: Leases | None = None
        sock.set_inheritable(False)  # a program that takes this one's place would hold the wire and not speak
        self._link = Link(sock, self._machinery.threads.run, _cut_off)
        self._runs: dict[str, ChildRun] = {}
        self._quitting = False
        self._loop = self._machinery.engine.loop
        logger = logging.getLogger("ag2_parallel")
        logger.addHandler(LogForwarder(self._link))
        logger.propagate = False
        self._link.send(wire.Ready(wire.VERSION, os.getpid()))

    def live(self) -> None:
        """Do what the parent says, until it needs this worker no more, or has gone."""
        self._post(self._beat)
        self._post(self._look)
        with contextlib.suppress(Exception):  # rubbish is the end of it, and the parent sees that
            for batch in self._link.messages():
                for message in batch:
                    self._take(message)
        if self._quitting:
            self._close_all()

    def _post(self, function: Any) -> None:
        self._machinery.engine.post(function)

    def _take(self, message: Any) -> None:
        if isinstance(message, wire.Hello):
            if message.version != wire.VERSION:
                os._exit(1)
            _become(message)
        elif isinstance(message, wire.OpenRun):
            run = self._runs[message.run] = ChildRun(message, self._machinery, self._link)
            self._machinery.threads.run(run.open)
        elif isinstance(message, wire.Quit):
            self._quitting = True
        else:
            self._post(lambda: self._told(message))

    # ---- on the loop

    def _told(self, message: Any) -> None:
        match message:
            case wire.Granted():
                self._office().granted(message.ticket, message.held_by, standing=message.standing)
            case wire.Revoked():
                self._office().revoked(message.ticket)
            case wire.Queued():
                self._office().queued(message.ticket)
            case wire.Denied():
                self._office().denied(message.ticket, message.held_by, message.wait)
            case wire.CloseRun():
                run = self._runs.pop(message.run, None)
                if run is not None:
                    run.stop_all()
                    self._machinery.threads.run(run.close)
            case _:
                name = message.key.run if hasattr(message, "key") else message.run
                if name in self._runs:
                    self._runs[name].told(message)

    def _office(self) -> Leases:
        assert self._leases is not None
        return self._leases

    def _make_leases(self, loop: asyncio.AbstractEventLoop) -> Leases:
        self._leases = Leases(loop, _OfficeWire(self._link))
        return self._leases

    def _beat(self) -> None:
        self._link.send(wire.Alive(_memory()))
        self._loop.call_later(_HEARTBEAT, self._beat)

    def _look(self) -> None:
        for run in self._runs.values():
            run.tell_news()
        if self._leases is not None:
            self._leases.tidy()
        self._loop.call_later(_NEWS, self._look)

    def _close_all(self) -> None:
        closing = [threading.Thread(target=run.close, daemon=True) for run in self._runs.values()]
        for each in closing:
            each.start()
        for each in closing:
            each.join(_CLOSING_TIME)


def _cut_off() -> None:
    """Nothing can be told any more: the parent has gone, or a task has closed files that are not its own."""
    os._exit(1)


class _OfficeWire:
    """Asks the parent for permits."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def ask(self, course: RemoteCourse, ticket: int, need: Need, patience: float | None) -> None:
        self._link.send(
            wire.Ask(
                ticket, course.run, course.endpoint, course.mark, course.model, course.group, course.priority,
                need.tokens, need.sure, patience,
            )
        )  # fmt: skip

    def done(self, ticket: int, used: int | None, *, went_through: bool) -> None:
        self._link.send(wire.Done(ticket, used, went_through))

    def leave(self, ticket: int) -> None:
        self._link.send(wire.GaveUp(ticket))

    def passed(self, ticket: int, count: int) -> None:
        self._link.send(wire.Passed(ticket, count))

    def throttled(self, ticket: int, hint: float | None, initial: float, took: float) -> None:
        self._link.send(wire.Throttled(ticket, hint, initial, took))

    def headers_came(self, ticket: int, headers: dict[str, str]) -> None:
        self._link.send(wire.HeadersCame(ticket, headers))


def _become(hello: wire.Hello) -> None:
    """Have the parent's import path, working folder and environment, as far as they are meant for this machine."""
    if hello.environment is None:
        sys.path.extend(each for each in hello.path if each not in sys.path and Path(each).exists())
        return
    sys.path[:] = hello.path
    if hello.directory is not None:
        with contextlib.suppress(OSError):
            os.chdir(hello.directory)
    os.environ.clear()
    os.environ.update(hello.environment)


def _memory() -> int:
    """Bytes of this process in memory."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - four times a second
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most it ever had
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024

"""A process of one thread that has everything loaded and forks itself for each worker.

So a worker costs some milliseconds, and the user's own process, with its threads, is never forked. It
speaks lines of JSON with the parent; a request is one byte and, beside it, the socket of the new worker:

    parent                     fork server
      F + socket ───────────►  fork ─► worker (reads its socket)
      ◄───────── {"pid": n}                     or {"refused": why} where the system has no room for it
      ◄───────── {"exited": n, "status": s}     whenever a worker ends

It ends with its parent, and takes the workers along.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_LOOK: Final = 0.5
"""Seconds between two looks at whether the parent still lives."""

_SIGNAL_AT_PARENTS_DEATH: Final = 1
"""`PR_SET_PDEATHSIG` of Linux."""


class ForkServer:
    """Forks workers until its parent has gone."""

    def __init__(
        self,
        control: socket.socket,
        parent: int,
        work: Callable[[socket.socket], None],
        fork: Callable[[], int] = os.fork,
    ) -> None:
        """`work` is what a worker does with its socket, `fork` makes its process."""
        self._fork_process = fork
        self._control = control
        self._parent = parent
        self._work = work
        self._workers: set[int] = set()
        self._wake, self._woken = os.pipe()

    def serve(self) -> None:
        """Serve; returns when the parent has gone and the workers are dead."""
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        gc.collect()
        gc.freeze()  # what is loaded stays in pages that all workers share
        self._tell({"ready": True})
        try:
            while os.getppid() == self._parent and self._turn():
                pass
        finally:
            for pid in self._workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _turn(self) -> bool:
        ends: list[Any] = [self._control, self._wake]
        ready, _, _ = select.select(ends, [], [], _LOOK)
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        self._reap()
        if self._control not in ready:
            return True
        try:
            data, sockets, _, _ = socket.recv_fds(self._control, 1, 1)
        except ConnectionError:  # the parent was killed before it read all that it was told
            return False
        if not data:
            return False
        self._fork(sockets[0])
        return True

    def _reap(self) -> None:
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            self._workers.discard(pid)
            self._tell({"exited": pid, "status": os.waitstatus_to_exitcode(status)})

    def _fork(self, descriptor: int) -> None:
        server = os.getpid()
        try:
            pid = self._fork_process()
        except OSError as error:  # for now: the workers that are there go on
            os.close(descriptor)
            self._tell({"refused": str(error)})
            return
        if pid:
            os.close(descriptor)
            self._workers.add(pid)
            self._tell({"pid": pid})
            return
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._wake, self._woken):
                os.close(end)
            self._control.close()
            os.setsid()  # signals to a whole group, sent in one worker, are for that one alone
            die_with(server)
            self._work(socket.socket(fileno=descriptor))
        except BaseException:  # a worker must never go on as a second server
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)

    def _tell(self, line: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # the parent has gone: seen at the next turn
            self._control.sendall(json.dumps(line).encode() + b"\n")


def die_with(parent: int) -> None:
    """Have this process killed when its parent ends, also where it would not notice (Linux); at once if it has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def ignore_interrupts() -> None:
    """Ctrl-C is the parent's to decide about. A handler, not "ignore": programs that tasks start get the default back."""
    signal.signal(signal.SIGINT, _nothing)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Do nothing."""

"""Starting worker processes: by a fork server with everything loaded, or each as a new interpreter.

Neither imports the caller's main module, so scripts without a main guard, `-c`, standard input and notebooks
are all the same. Blocking: to be called on threads of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ag2_parallel.backends.flights import exit_in_words
from ag2_parallel.errors import Ag2ParallelError

if TYPE_CHECKING:
    from collections.abc import Callable

_START_TIME: Final = 60.0
"""Seconds that loading may take."""

_END_TIME: Final = 2.0

_FORKS: Final = hasattr(os, "fork") and hasattr(socket, "send_fds")

_CODE: Final = "import sys; sys.path[:] = {path!r}; from ag2_parallel.process_main import main; main({arguments!r})"


class Starter(Protocol):
    """Starts worker processes."""

    @property
    def alive(self) -> bool:
        """Whether it can start any more."""

    @property
    def places(self) -> int | None:
        """How many processes there is room for at a time; None: as many as wanted."""

    @property
    def elsewhere(self) -> bool:
        """Whether processes may be on other machines: they take their time to start, and keep their folder and environment."""

    def start(self, sock: socket.socket, exited: Callable[[str], None]) -> Callable[[], None]:
        """Start a process at the other end of `sock` and return what kills it, which does not block.

        `exited` is told what became of the process, in words, from any thread.

        Raises:
            OSError: If it cannot be started.
        """

    def close(self) -> None:
        """Nothing more will be started."""


def starter(*, preload: bool) -> Starter:
    """The best that the platform has; `preload` AG2 Classic.

    Raises:
        Ag2ParallelError: If the fork server does not start; says why.
    """
    return ForkStarter(preload=preload) if _FORKS else SpawnStarter()


class ForkStarter:
    """Forks a server of our own; see `fork_server`."""

    places = None
    elsewhere = False

    def __init__(self, *, preload: bool) -> None:
        """Start the server and wait until it has loaded everything."""
        self._lock = threading.Lock()  # one request at a time
        self._book = threading.Lock()
        self._pids: queue.SimpleQueue[int | str | None] = queue.SimpleQueue()
        self._gone_silent = False
        self._exited: dict[int, Callable[[str], None]] = {}
        self._gone: dict[int, int] = {}
        self._control, theirs = socket.socketpair()
        with theirs:
            arguments = {"role": "server", "fd": theirs.fileno(), "parent": os.getpid(), "preload": preload}
            self._process = _interpreter(arguments, theirs.fileno())
        self._lines = self._control.makefile("rb")
        threading.Thread(target=self._watch, args=(self._process,), daemon=True, name="ag2-parallel-reaper").start()
        self._control.settimeout(_START_TIME)
        try:
            ready = self._lines.readline()
        except TimeoutError:
            ready = b""
        if not ready:
            self.close()
            raise Ag2ParallelError("the worker processes did not start; what stands against it is on standard error")
        self._control.settimeout(None)
        threading.Thread(target=self._listen, daemon=True, name="ag2-parallel-forks").start()

    @property
    def alive(self) -> bool:
        """See `Starter`."""
        return not self._gone_silent and self._process.returncode is None

    def start(self, sock: socket.socket, exited: Callable[[str], None]) -> Callable[[], None]:
        """See `Starter`."""
        with self._lock:
            try:
                socket.send_fds(self._control, [b"F"], [sock.fileno()])
            except OSError:
                self._gone_silent = True
                raise
            pid = self._pids.get()
            if pid is None:
                self._gone_silent = True
                self._pids.put(None)
                raise OSError("the process that starts workers has ended")
            if isinstance(pid, str):
                raise OSError(pid)
        with self._book:
            status = self._gone.pop(pid, None)
            if status is None:
                self._exited[pid] = exited
        if status is not None:
            exited(exit_in_words(status))
        return partial(_kill, pid)

    def close(self) -> None:
        """See `Starter`."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIME)
        if self._process.poll() is None:
            self._process.kill()
        self._control.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._lines:
                told: dict[str, Any] = json.loads(line)
                if "pid" in told:
                    self._pids.put(told["pid"])
                elif "refused" in told:
                    self._pids.put(told["refused"])
                elif "exited" in told:
                    self._ended(told["exited"], told["status"])
        self._pids.put(None)
        self._lines.close()
        with self._book:
            left, self._exited = list(self._exited.values()), {}
        for exited in left:
            exited(exit_in_words(-signal.SIGKILL))  # they end with their server

    def _ended(self, pid: int, status: int) -> None:
        with self._book:
            exited = self._exited.pop(pid, None)
            if exited is None:
                self._gone[pid] = status
        if exited is not None:
            exited(exit_in_words(status))

    @staticmethod
    def _watch(process: subprocess.Popen[bytes]) -> None:
        """Take note of the server's end, so that it does not stay as a zombie."""
        process.wait()


class SpawnStarter:
    """Starts each worker as an interpreter of its own."""

    alive = True
    places = None
    elsewhere = False

    def start(self, sock: socket.socket, exited: Callable[[str], None]) -> Callable[[], None]:
        """See `Starter`."""
        if sys.platform == "win32":
            process = _interpreter({"role": "worker", "shared": True}, None)
            assert process.stdin is not None
            with process.stdin as pipe:
                pipe.write(sock.share(process.pid))
        else:
            process = _interpreter({"role": "worker", "fd": sock.fileno(), "parent": os.getpid()}, sock.fileno())
        target = lambda: exited(exit_in_words(process.wait()))  # noqa: E731 - said once
        threading.Thread(target=target, daemon=True, name="ag2-parallel-reaper").start()
        return process.kill

    def close(self) -> None:
        """See `Starter`."""


def import_path() -> list[str]:
    """Where this process imports from; what Python passes over in `sys.path`, such as a `Path`, is left out."""
    given: list[object] = list(sys.path)
    return [str(each) for each in given if isinstance(each, str)]


def _interpreter(arguments: dict[str, Any], descriptor: int | None) -> subprocess.Popen[bytes]:
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] # noqa: SLF001 - as multiprocessing does
    code = _CODE.format(path=import_path(), arguments=arguments)
    return subprocess.Popen(  # noqa: S603 - this interpreter, and code of this package
        [sys.executable, *flags, "-c", code],
        stdin=subprocess.PIPE if descriptor is None else subprocess.DEVNULL,
        stdout=_standard_error(),
        stderr=None if _is_open(2) else subprocess.DEVNULL,
        pass_fds=() if descriptor is None else (descriptor,),
        start_new_session=True,
    )


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _standard_error() -> int:
    """Where stray prints of workers go: to standard error, since standard output carries the caller's data."""
    return 2 if _is_open(2) else subprocess.DEVNULL


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True

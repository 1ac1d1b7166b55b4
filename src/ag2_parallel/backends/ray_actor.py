"""A worker in a Ray actor: the same worker as in a process, its end of the wire handed on through calls of the actor."""

from __future__ import annotations

import importlib
import socket
import threading
from typing import Final

THREADS: Final = 2
"""One for what comes, and one for what goes."""

MOST: Final = 1 << 20
"""Bytes at a time. Who reads slowly is waited for, since each side has one piece on its way and no more."""


class RayActor:
    """The worker's end. Whoever has the other calls `deliver` and `take`, each again when it has returned."""

    def __init__(self, *, preload: bool) -> None:
        """Load what workers need, AG2 Classic too where it is to be preloaded, and be one."""
        main = importlib.import_module("ag2_parallel.process_main")  # joins all folders, so none can import it
        main.load(preload=preload)
        self._sock, worker_end = socket.socketpair()
        work = main.WorkerMain(worker_end).live
        self._worker = threading.Thread(target=work, daemon=True, name="ag2-parallel-main")
        self._worker.start()

    def deliver(self, data: bytes) -> None:
        """Bytes for the worker; none at the end."""
        if data:
            self._sock.sendall(data)
        else:
            self._sock.shutdown(socket.SHUT_WR)

    def take(self) -> bytes:
        """Wait for bytes of the worker; none at the end, when it has closed what it had open."""
        data = self._sock.recv(MOST)
        if not data:
            self._worker.join()
        return data

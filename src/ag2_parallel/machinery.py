"""What outlives a run: the engine, the worker threads and the gate, kept or made for one run."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ag2_parallel.core.clock import SystemClock
from ag2_parallel.core.engine import Engine
from ag2_parallel.gate.on_demand import SharedGate
from ag2_parallel.workers.daemon_threads import DaemonThreads

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ag2_parallel.backend_options import ProcessBackend, RayBackend
    from ag2_parallel.backends.processes import ProcessPool
    from ag2_parallel.gate.limiter import Limiter


class Machinery:
    """An engine, worker threads and a gate; worker processes where a run wants them."""

    def __init__(self, limiter: Callable[[asyncio.AbstractEventLoop], Limiter] | None = None) -> None:
        """Start the engine; `limiter` makes what keeps the limits of model calls, if not the gate itself."""
        self.leases = 0
        self.retired = False
        """Whether nobody keeps it any more, so that the last lease closes it."""
        self.clock = SystemClock()
        self.engine = Engine()
        self.threads = DaemonThreads("ag2-parallel-worker")
        loop = self.engine.loop
        self.gate = SharedGate(
            loop=loop,
            post=self.engine.post,
            spawn=self.threads.run,
            clock=self.clock,
            limiter=None if limiter is None else lambda: limiter(loop),
        )
        self._lock = threading.Lock()
        self._processes: ProcessPool | None = None

    def processes(self, policy: ProcessBackend | RayBackend) -> ProcessPool:
        """The worker processes, or actors, made when a run first asks for them. Safe from any thread."""
        from ag2_parallel.backends.places import starter_for
        from ag2_parallel.backends.processes import ProcessPool
        from ag2_parallel.gate.lease_office import LeaseOffice

        with self._lock:
            if self._processes is None:
                loop, post, spawn = self.engine.loop, self.engine.post, self.threads.run
                office, starter = LeaseOffice(loop), starter_for(policy)
                self._processes = ProcessPool(policy, office, starter, loop=loop, post=post, spawn=spawn)
            return self._processes

    def close(self) -> None:
        """End processes, close connections and end the threads; stuck ones are given up."""
        if self._processes is not None and self.engine.pid == os.getpid():
            self._processes.close()
        if self.engine.pid == os.getpid():
            self.gate.close(self.engine.call)
        self.engine.close()
        self.threads.close()


class MachineryKeeper:
    """Gives a run the kept machinery while a `with` block is open, or one of its own. Safe from any thread."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._lock = threading.Lock()
        self._kept: Machinery | None = None
        self._entered = 0

    def keep(self) -> None:
        """A `with` block was entered: keep one machinery until it is left."""
        with self._lock:
            self._entered += 1
            if self._kept is None:
                self._kept = Machinery()

    def release(self) -> None:
        """A `with` block was left; with the last one the machinery is closed."""
        with self._lock:
            self._entered -= 1
            machinery = self._kept if self._entered == 0 else None
            if machinery is not None:
                self._kept = None
                machinery.retired = True
            close = machinery is not None and machinery.leases == 0
        if close and machinery is not None:
            machinery.close()

    def lease(self) -> Lease:
        """Machinery for one run."""
        with self._lock:
            if self._kept is not None and self._kept.engine.pid != os.getpid():
                self._kept = Machinery()  # a forked child has none of the threads, and starts afresh
            machinery = self._kept
            if machinery is None:
                machinery = Machinery()
                machinery.retired = True
            machinery.leases += 1
        return Lease(machinery, self._lock)


class Lease:
    """The machinery of one run, to be ended with it."""

    def __init__(self, machinery: Machinery, lock: threading.Lock) -> None:
        """The machinery's leases are counted under `lock`."""
        self.machinery = machinery
        self._lock = lock
        self._ended = False
        self._callbacks: list[Callable[[], None]] = []

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the lease ends, before the machinery may close."""
        self._callbacks.append(callback)

    def end(self) -> None:
        """The run is over; the last lease of machinery that nobody keeps closes it. Calling it again does nothing."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self.machinery.leases -= 1
            close = self.machinery.retired and self.machinery.leases == 0
        for callback in self._callbacks:
            callback()
        if close:
            self.machinery.close()

"""Starts workers as Ray actors, and carries the wire to them.

Theory of operation
===================

A worker is told apart from one in a process by nothing but its wire, which leads through calls of its actor:

    this process                                     actor, on any node
      Link ─ socket ─► inward ──── deliver(bytes) ───►  socket ─► worker
      Link ◄─ socket ── outward ◄──── take() ──────────  socket ◄─ worker

Each direction has one call at a time on its way, so a side that is slow holds the other up, and nothing piles up in
between. A call that fails is never made again: it could have been carried out, and bytes would come twice or not at all. So it is the
end of the worker, and what ran in it runs again elsewhere.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.backends.ray_session import SESSION
from ag2_parallel.errors import Ag2ParallelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.backend_options import RayBackend

_END_TIME: Final = 3.0
"""Seconds in which calls under way have to end before this process leaves Ray."""

_MOST_WORDS: Final = 300
"""Characters of what Ray has to say."""

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")

_OPTIONS: Final = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""What Ray calls a resource where an actor asks for it."""


class RayStarter:
    """See `starting.Starter`."""

    elsewhere = True

    def __init__(self, policy: RayBackend, *, preload: bool) -> None:
        """Connect to Ray, or start one; blocking.

        Raises:
            Ag2ParallelError: If that cannot be done.
        """
        connected = SESSION.enter(policy)
        import ray

        from ag2_parallel.backends.ray_actor import THREADS, RayActor

        try:
            options = _options(policy, own_env=not connected)
            self._actors = ray.remote(RayActor).options(max_concurrency=THREADS, **options)
            self.places = policy.actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        except Exception as error:
            SESSION.leave()
            raise Ag2ParallelError(f"option backend: Ray refuses {policy!r}: {error}") from error
        self.alive = True
        self._preload = preload
        self._wires: set[_Wire] = set()
        self._lock = threading.Lock()

    def start(self, sock: socket.socket, exited: Callable[[str], None]) -> Callable[[], None]:
        """See `Starter`."""
        wire = _Wire(self._actors.remote(preload=self._preload), sock.dup(), exited, self._over)
        with self._lock:
            self._wires.add(wire)
        wire.begin()
        return wire.kill

    def _over(self, wire: _Wire) -> None:
        with self._lock:
            self._wires.discard(wire)

    def close(self) -> None:
        """See `Starter`."""
        if not self.alive:
            return
        self.alive = False
        with self._lock:
            left = list(self._wires)
        for each in left:
            each.kill()
        for each in left:
            each.wait(_END_TIME)
        SESSION.leave()


class _Wire:
    """Carries bytes between a socket of this process and an actor."""

    def __init__(
        self, actor: Any, sock: socket.socket, exited: Callable[[str], None], over: Callable[[_Wire], None]
    ) -> None:
        self._actor = actor
        self._sock = sock
        self._exited = exited
        self._over = over
        self._threads = [
            threading.Thread(target=work, daemon=True, name="ag2-parallel-ray")
            for work in (self._inward, self._outward)
        ]

    def begin(self) -> None:
        for each in self._threads:
            each.start()

    def wait(self, seconds: float) -> None:
        for each in self._threads:
            each.join(seconds)

    def kill(self) -> None:
        """End the actor; on a thread, since that is a call to the cluster."""
        threading.Thread(target=self._kill, daemon=True, name="ag2-parallel-ray").start()

    def _kill(self) -> None:
        import ray

        with contextlib.suppress(Exception):  # it has gone, or Ray has
            ray.kill(self._actor, no_restart=True)

    def _inward(self) -> None:
        import ray

        with contextlib.suppress(Exception):  # the actor has gone: `_outward` says why
            while data := self._received():
                ray.get(self._actor.deliver.remote(data))
            ray.get(self._actor.deliver.remote(b""))

    def _received(self) -> bytes:
        from ag2_parallel.backends.ray_actor import MOST

        try:
            return self._sock.recv(MOST)
        except OSError:
            return b""

    def _outward(self) -> None:
        import ray

        what = "ended"
        try:
            while data := ray.get(self._actor.take.remote()):
                self._sock.sendall(data)
        except OSError:  # this process hung up
            what = "was not needed any more"
        except Exception as error:
            what = in_words(error)
        self._kill()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._exited(what)
        self._threads[0].join()
        self._sock.close()
        self._over(self)


def in_words(error: Exception) -> str:
    """What became of an actor, from the error of a call of it."""
    told = _COLOURS.sub("", str(error)).strip()
    place = re.search(r"\bip: (\S+)", told)
    where = f" on {place[1]}" if place else ""
    if "creation task" in told or "__init__" in told:
        return f"could not be started{where}: {told.splitlines()[-1].strip()}"
    if cut := re.search(r"unavailable: (?:RpcError: )?([^:]*: [^:]*?)(?: rpc_code|\.|$)", told):
        return f"was lost{where}: it cannot be reached any more ({cut[1]})"
    why = re.search(r"exit detail: (.*?)(?= Some common causes| There are some potential|$)", told, re.DOTALL)
    why = why or re.search(r"(?:dead|died) because (.*)", told, re.DOTALL)
    return f"was lost{where}: {' '.join((why[1] if why else told).split())[:_MOST_WORDS]}"


def _options(policy: RayBackend, *, own_env: bool) -> dict[str, Any]:
    """What Ray should know of each actor; `own_env` where the connection was made without the runtime environment."""
    amounts = dict(policy.resources or {})
    options: dict[str, Any] = {"num_cpus": 0, "scheduling_strategy": "SPREAD", "max_restarts": 0, "max_task_retries": 0}
    options |= {_OPTIONS[name]: amounts.pop(name) for name in _OPTIONS if name in amounts}
    if own_env and policy.runtime_env is not None:
        options["runtime_env"] = dict(policy.runtime_env)
    return options | ({"resources": amounts} if amounts else {})

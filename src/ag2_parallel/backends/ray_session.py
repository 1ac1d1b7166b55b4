"""This process's connection to Ray. There can be one at a time, so all runners share it."""

from __future__ import annotations

import logging
import os
import socket
import threading
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import Ag2ParallelError

if TYPE_CHECKING:
    from ag2_parallel.backend_options import RayBackend

_OBJECT_STORE: Final = 100 * 1024 * 1024
"""Bytes; what is under way is never more than a piece for each actor and direction."""

_KNOCK_TIME: Final = 10.0

_TELEMETRY: Final = "RAY_USAGE_STATS_ENABLED"


class RaySession:
    """Connects with the first that enters, and disconnects with the last that leaves; a Ray of our own is ended then.

    A connection that somebody else made is used and left alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._address: str | None = None
        self._keeper: _Keeper | None = None

    def enter(self, policy: RayBackend) -> bool:
        """Be connected; blocking. Returns whether the connection has the policy's runtime environment.

        Raises:
            Ag2ParallelError: If there is no Ray at the address, or this process is connected to another.
        """
        import ray

        with self._lock:
            anew = self._users == 0 and not ray.is_initialized()
            if anew:
                self._keeper, self._address = _Keeper(policy), policy.address
            elif self._keeper is not None and policy.address not in (None, self._address):
                raise Ag2ParallelError(
                    f"option backend: this process is connected to the Ray at {self._address or 'this machine'}, and cannot be to "
                    f"that at {policy.address} at the same time; run one after the other"
                )
            self._users += 1
        return anew

    def leave(self) -> None:
        """It is not needed any more by one; blocking."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._keeper is not None:
                self._keeper.end()
                self._keeper = None


SESSION: Final = RaySession()
"""Of this process."""


class _Keeper:
    """A thread that connects, waits and disconnects.

    It is one thread that does all of it because the system ends the processes of a Ray of our own together with the thread that
    started them.
    """

    def __init__(self, policy: RayBackend) -> None:
        self._policy = policy
        self._connected, self._unwanted = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, daemon=True, name="ag2-parallel-ray")
        self._thread.start()
        self._connected.wait()
        if self._error is not None:
            where = f"the Ray at {address}" if (address := _address(policy)) else "a Ray of this machine's own"
            done = "reached" if address else "started"
            raise Ag2ParallelError(f"option backend: {where} could not be {done}: {self._error}") from self._error

    def end(self) -> None:
        self._unwanted.set()
        self._thread.join()

    def _live(self) -> None:
        import ray

        quiet = logging.getLogger("ray")
        level = quiet.level
        quiet.setLevel(logging.ERROR)  # it has something to say about every start
        try:
            _connect(self._policy)
        except BaseException as error:
            self._error = error
            return
        finally:
            quiet.setLevel(level)
            self._connected.set()
        self._unwanted.wait()
        ray.shutdown()


def _address(policy: RayBackend) -> str | None:
    return policy.address or os.environ.get("RAY_ADDRESS")


def _connect(policy: RayBackend) -> None:
    import ray

    said: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
    if policy.runtime_env is not None:
        said["runtime_env"] = dict(policy.runtime_env)
    address = _address(policy)
    if address is not None:
        _knock(address)
        ray.init(address=address, **said)
        return
    before = os.environ.get(_TELEMETRY)
    os.environ.setdefault(_TELEMETRY, "0")  # there is no other way to say so; nobody asked for it to be sent
    try:
        ray.init(
            address="local", include_dashboard=False, object_store_memory=_OBJECT_STORE, **_local_size(policy), **said
        )
    finally:
        if before is None:
            del os.environ[_TELEMETRY]


def _knock(address: str) -> None:
    """Fail at once where nobody listens, for which Ray waits for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_TIME).close()


def _local_size(policy: RayBackend) -> dict[str, Any]:
    """Room on this machine for all actors, and for as many that have one attempt alone."""
    actors = policy.workers_for(policy.actors or os.cpu_count() or 1, os.cpu_count())
    amounts = {name: amount * actors * 2 for name, amount in (policy.resources or {}).items()}
    cpus = max(os.cpu_count() or 1, ceil(amounts.pop("CPU", 0)))
    for known in ("GPU", "memory"):
        amounts.pop(known, None)  # as many as this machine has
    return {"num_cpus": cpus, "resources": {name: float(ceil(amount)) for name, amount in amounts.items()}}

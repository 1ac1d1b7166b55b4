"""Where tasks run, as values of the option `backend`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.policies import MAX_WORKERS, is_whole

_LEAST_MEMORY: Final = 64 * 1024 * 1024
"""Bytes; a worker process has more than that before its first task."""


@dataclass(frozen=True, slots=True)
class ProcessBackend:
    """Tasks run in worker processes of this machine: `backend=ProcessBackend(...)`.

    Attributes:
        workers: Processes; None: as many as processors, and no more than tasks at once.
        threads: Tasks at once in each; None: `max_workers` spread over the workers.
        max_memory: Bytes that a process may have. From nine tenths of it on it takes nothing new and is replaced when
            its tasks have ended; past it, it is killed. None: no limit.
        max_tasks: Attempts after which a process is replaced; None: never.
        rerun_lost: Whether tasks that were running in a process that died run again, once, each alone in a process.
    """

    workers: int | None = None
    threads: int | None = None
    max_memory: int | None = None
    max_tasks: int | None = None
    rerun_lost: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        problems = [
            f"ProcessBackend {name}: {value!r} is not a whole number from 1 to {MAX_WORKERS}"
            for name in ("workers", "threads")
            if (value := getattr(self, name)) is not None and not (is_whole(value) and 1 <= value <= MAX_WORKERS)
        ]
        problems += [
            f"ProcessBackend {name}: {value!r} is not a whole number of {what} from {least:,}; use None for no limit"
            for name, what, least in (("max_memory", "bytes", _LEAST_MEMORY), ("max_tasks", "attempts", 1))
            if (value := getattr(self, name)) is not None and not (is_whole(value) and value >= least)
        ]
        if not isinstance(self.rerun_lost, bool):
            problems.append(f"ProcessBackend rerun_lost: {self.rerun_lost!r} is neither True nor False")
        if problems:
            raise ConfigurationError(problems)

    def workers_for(self, slots: int, places: int | None = None) -> int:
        """Processes for so many tasks at once, where there is room for `places`; None: that is not limited."""
        return min(slots, self.workers if self.workers is not None else places or os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class RayBackend:
    """Tasks run in actors of a Ray cluster: `backend=RayBackend(...)`. Needs `pip install "ag2-parallel[ray]"`.

    Attributes:
        address: The cluster: "auto", "ray://host:10001" or "host:port". None: the one that the environment variable
            RAY_ADDRESS names, if it is set, or that this process is connected to, else a Ray of this machine's own,
            started and ended with the runner's `with` block.
        actors: Actors, each of which is a process; None: as many as processors in the cluster. Never more than tasks at once.
        resources: What each actor asks of its node, such as `{"CPU": 1, "GPU": 0.5, "memory": 2e9, "agents": 1}`.
            None: nothing, since agents mostly wait.
        runtime_env: Ray's runtime environment of the actors, such as `{"pip": [...], "env_vars": {...}}`.
        rerun_lost: Whether tasks that were running in an actor that died run again, once, each alone in an actor.
    """

    address: str | None = None
    actors: int | None = None
    resources: Mapping[str, float] | None = None
    runtime_env: Mapping[str, Any] | None = None
    rerun_lost: bool = True

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        problems = []
        if self.address is not None and not _is_text(self.address):
            problems.append(f'RayBackend address: {self.address!r} is no address, such as "auto" or "ray://host:10001"')
        if self.actors is not None and not (is_whole(self.actors) and 1 <= self.actors <= MAX_WORKERS):
            problems.append(f"RayBackend actors: {self.actors!r} is not a whole number from 1 to {MAX_WORKERS}")
        if self.resources is not None and not _are_amounts(self.resources):
            problems.append(
                f"RayBackend resources: {self.resources!r} is no mapping from names to amounts, such as {{'CPU': 1, 'GPU': 0.5}}"
            )
        if self.runtime_env is not None and not isinstance(self.runtime_env, Mapping):
            problems.append(f"RayBackend runtime_env: {self.runtime_env!r} is no mapping")
        if not isinstance(self.rerun_lost, bool):
            problems.append(f"RayBackend rerun_lost: {self.rerun_lost!r} is neither True nor False")
        if problems:
            raise ConfigurationError(problems)

    @property
    def max_memory(self) -> None:
        """Bytes that an actor may have: Ray watches over the memory of its nodes."""

    @property
    def max_tasks(self) -> None:
        """Attempts after which an actor is replaced: never."""

    def workers_for(self, slots: int, places: int | None = None) -> int:
        """Actors for so many tasks at once, where there is room for `places`."""
        return min(slots, self.actors or places or 1)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_amounts(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 0
        for name, amount in value.items()
    )

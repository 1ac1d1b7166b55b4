"""Where tasks run, as values of the option `backend`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

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

    def workers_for(self, slots: int) -> int:
        """Processes for so many tasks at once."""
        return min(slots, self.workers if self.workers is not None else os.cpu_count() or 1)

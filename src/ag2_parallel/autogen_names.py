"""One opt-in line that makes `from autogen import ParallelAgentRunner` work."""

from __future__ import annotations

import importlib

from ag2_parallel.errors import ConfigurationError, MissingExtraError
from ag2_parallel.results import ParallelTaskResult
from ag2_parallel.runner import ParallelAgentRunner, run_agents_parallel
from ag2_parallel.tasks import ParallelTask

_ADDED = {
    "ParallelAgentRunner": ParallelAgentRunner,
    "ParallelTask": ParallelTask,
    "ParallelTaskResult": ParallelTaskResult,
    "run_agents_parallel": run_agents_parallel,
}


def add_to_autogen() -> None:
    """Add the runner's names to the `autogen` module of this process; calling it twice does no harm.

    It only adds names, and the package never calls it by itself.

    Raises:
        MissingExtraError: If AG2 Classic is not installed.
        ConfigurationError: If AG2 itself has one of the names; then none is added.
    """
    try:
        autogen = importlib.import_module("autogen")
    except ImportError as error:
        raise MissingExtraError('AG2 Classic is not installed: pip install "ag2-parallel[classic]"') from error
    taken = [name for name, ours in _ADDED.items() if getattr(autogen, name, ours) is not ours]
    if taken:
        raise ConfigurationError(
            f"autogen has {', '.join(taken)} of its own, which is not replaced: import from ag2_parallel instead"
        )
    for name, ours in _ADDED.items():
        setattr(autogen, name, ours)

"""Where the attempts of a run go: what must cross to get there, and be loaded there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ag2_parallel import validation
from ag2_parallel.backend_options import RayBackend
from ag2_parallel.errors import MissingExtraError, NotSerializableError

if TYPE_CHECKING:
    from ag2_parallel.frameworks.registry import Frameworks
    from ag2_parallel.machinery import Machinery
    from ag2_parallel.options import Options
    from ag2_parallel.tasks import ParallelTask

_CROSSING = ("llm_config", "model_retry", "redact", "resources")
"""Options that attempts need where they are."""


class Place:
    """This process, worker processes, or actors of a cluster."""

    def __init__(self, options: Options, frameworks: Frameworks) -> None:
        self._options = options
        self._processes = options.processes
        self._frameworks = frameworks

    def check_options(self) -> None:
        """Refuse options that would have to cross and cannot.

        Raises:
            NotSerializableError: Names them.
            MissingExtraError: If tasks are to run on Ray and it is not installed.
        """
        if self._processes is None:
            return
        if isinstance(self._processes, RayBackend) and find_spec("ray") is None:
            raise MissingExtraError('backend "ray" needs Ray: pip install "ag2-parallel[ray]"')
        from ag2_parallel.backends.crossing import option_problem

        problems = [text for name in _CROSSING if (text := option_problem(name, getattr(self._options, name)))]
        if problems:
            raise NotSerializableError(problems)

    def problems(self, task: ParallelTask) -> list[validation.Problem]:
        """What stands against sending a task there."""
        if self._processes is None:
            return []
        from ag2_parallel.backends.crossing import problem

        text = problem(task, live=self._frameworks.is_live(task.agent))
        return [] if text is None else [validation.Problem(text, NotSerializableError)]

    def prepare(self, task: ParallelTask, machinery: Machinery) -> bool:
        """Get processes ready for a task; blocking. False where there are none."""
        if self._processes is None:
            return False
        machinery.processes(self._processes).open(preload=self._frameworks.may_need_classic(task))
        return True

    def is_prepared(self, task: ParallelTask, machinery: Machinery) -> bool:
        """Whether processes are ready for a task; False where there are none."""
        if self._processes is None:
            return False
        preload = self._frameworks.may_need_classic(task)
        return machinery.processes(self._processes).is_open(preload=preload)

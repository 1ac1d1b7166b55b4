"""Which frameworks there are, imported when a task first needs them."""

from __future__ import annotations

import importlib.util
import sys
import threading
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import MissingExtraError
from ag2_parallel.frameworks.classic.kinds import is_agent_class
from ag2_parallel.frameworks.functions import FunctionFramework
from ag2_parallel.tasks import ParallelTask
from ag2_parallel.validation import Problem, agent_class, unsupported

if TYPE_CHECKING:
    from ag2_parallel.ports import Framework

_warm_lock = threading.Lock()
_warm: set[str] = set()


class Frameworks:
    """The frameworks of one run: `ports.FrameworkChoice`. AG2 Classic's is made when a task first needs it."""

    def __init__(self, llm_config: Any, *, keyless: bool = False) -> None:
        """`llm_config` is for tasks that have none; `keyless`: no call leaves the process, so that no key is needed."""
        self._keyless = keyless
        self._functions = FunctionFramework()
        self._llm_config = llm_config
        self._lock = threading.Lock()
        self._classic: Framework | None = None

    @property
    def functions(self) -> Framework:
        """What runs functions and objects with `run_task`."""
        return self._functions

    @property
    def classic(self) -> Framework:
        """What runs AG2 Classic."""
        from ag2_parallel.frameworks.classic.framework import ClassicFramework

        with self._lock:
            if self._classic is None:
                self._classic = ClassicFramework(self._llm_config, keyless=self._keyless)
            return self._classic

    def recognising(self, agent: object) -> Framework | None:
        """The framework of an agent, or None if no loaded one knows it."""
        if self._functions.recognises(agent):
            return self._functions
        if "autogen" in sys.modules and self.classic.recognises(agent):
            return self.classic
        return None

    def problems(self, task: ParallelTask) -> list[Problem]:
        """What stands against a task's agent, before anything starts."""
        if task.run is not None:
            return _worded(self._functions.problems(task, None))
        if isinstance(task.agent, str):
            return []
        if task.agent is None:
            if _installed("autogen"):
                return _worded(self.classic.problems(task, None))
            text = f'task "{task.name}": AG2 Classic is not installed: pip install "ag2-parallel[classic]"'
            return [Problem(text, MissingExtraError)]
        return self._agent_problems(task)

    def _agent_problems(self, task: ParallelTask) -> list[Problem]:
        if isinstance(task.agent, type) and is_agent_class(task.agent):
            return [agent_class(task)]
        framework = self.recognising(task.agent)
        if framework is not None:
            return _worded(framework.problems(task, task.agent))
        return [] if callable(task.agent) else [unsupported(task)]

    def models(self, task: ParallelTask) -> list[tuple[str, str, bool]]:
        """The models that a task without problems is known to use: name, endpoint, and whether a price stands there."""
        if task.run is not None or isinstance(task.agent, str):
            return []
        framework = self.classic if task.agent is None else self.recognising(task.agent)
        return [] if framework is None else framework.models(task, task.agent)

    def warm_up_for(self, task: ParallelTask) -> None:
        """Pay the one-off costs of what the task may need; blocking, once a process."""
        if not self.is_warm_for(task):
            with _warm_lock:
                if "classic" not in _warm:
                    self.classic.warm_up()
                    _warm.add("classic")

    def preload(self) -> None:
        """Pay what AG2 Classic costs once, if it is installed; blocking."""
        if _installed("autogen"):
            self.warm_up_for(ParallelTask("preload"))

    def is_warm_for(self, task: ParallelTask) -> bool:
        """Whether what the task may need was paid already."""
        return "classic" in _warm or not self.may_need_classic(task)

    def may_need_classic(self, task: ParallelTask) -> bool:
        """Whether the task may need AG2 Classic."""
        if task.run is not None or self._functions.recognises(task.agent):
            return False
        return task.agent is None or "autogen" in sys.modules or (_installed("autogen") and not _installed("ag2"))

    def is_live(self, agent: object) -> bool:
        """Whether `agent` is an agent or a team of AG2's, and no factory of one."""
        framework = None if agent is None else self.recognising(agent)
        return framework is not None and framework is not self._functions


def _worded(texts: list[str]) -> list[Problem]:
    return [Problem(text) for text in texts]


def _installed(module: str) -> bool:
    return module in sys.modules or importlib.util.find_spec(module) is not None

"""Which frameworks there are, imported when a task first needs them."""

from __future__ import annotations

import importlib.util
import sys
import threading
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import MissingExtraError
from ag2_parallel.frameworks.ag2 import kinds as ag2_kinds
from ag2_parallel.frameworks.classic.kinds import is_agent_class
from ag2_parallel.frameworks.functions import FunctionFramework
from ag2_parallel.tasks import ParallelTask
from ag2_parallel.validation import Problem, agent_class, unsupported

if TYPE_CHECKING:
    from ag2_parallel.ports import Framework

_warm_lock = threading.Lock()
_warm: set[str] = set()

_LINES = {"classic": ("autogen", "autogen"), "ag2": ("ag2", "ag2.agent")}
"""The lines of AG2: the module that is installed, and the one that is loaded where there are agents."""

_MISSING = {
    "classic": 'AG2 Classic is not installed: pip install "ag2-parallel[classic]"',
    "ag2": 'AG2 1.x is not installed: pip install "ag2-parallel[ag2]"',
}


class Frameworks:
    """The frameworks of one run: `ports.FrameworkChoice`. A line of AG2 has one when a task first needs it."""

    def __init__(self, llm_config: Any, *, keyless: bool = False) -> None:
        """`llm_config` is for tasks that have none; `keyless`: no call leaves the process, so that no key is needed."""
        self._keyless = keyless
        self._functions = FunctionFramework()
        self._llm_config = llm_config
        self._lock = threading.Lock()
        self._lines: dict[str, Framework] = {}

    @property
    def functions(self) -> Framework:
        """What runs functions and objects with `run_task`."""
        return self._functions

    def building(self, task: ParallelTask) -> Framework:
        """What runs a task that has no agent."""
        return self._line(self._line_of_description(task))

    def routing(self, config: object) -> Framework:
        """What routes a model configuration through the gate."""
        return self._line("ag2" if ag2_kinds.is_model_config(config) else "classic")

    def recognising(self, agent: object) -> Framework | None:
        """The framework of an agent, or None if no loaded one knows it."""
        if self._functions.recognises(agent):
            return self._functions
        line = self._line_of(agent)
        return None if line is None else self._line(line)

    def problems(self, task: ParallelTask) -> list[Problem]:
        """What stands against a task's agent, before anything starts."""
        if task.run is not None:
            return _worded(self._functions.problems(task, None))
        if isinstance(task.agent, str):
            return []
        if task.agent is None:
            line = self._line_of_description(task)
            if _installed(_LINES[line][0]):
                return _worded(self._line(line).problems(task, None))
            return [Problem(f'task "{task.name}": {_MISSING[line]}', MissingExtraError)]
        return self._agent_problems(task)

    def _agent_problems(self, task: ParallelTask) -> list[Problem]:
        if isinstance(task.agent, type) and (is_agent_class(task.agent) or ag2_kinds.is_agent_class(task.agent)):
            return [agent_class(task)]
        framework = self.recognising(task.agent)
        if framework is not None:
            return _worded(framework.problems(task, task.agent))
        return [] if callable(task.agent) else [unsupported(task)]

    def models(self, task: ParallelTask) -> list[tuple[str, str, bool]]:
        """The models that a task without problems is known to use: name, endpoint, and whether a price stands there."""
        if task.run is not None or isinstance(task.agent, str):
            return []
        framework = self.building(task) if task.agent is None else self.recognising(task.agent)
        return [] if framework is None else framework.models(task, task.agent)

    def warm_up_for(self, task: ParallelTask) -> None:
        """Pay the one-off costs of what the task may need; blocking, once a process."""
        for line in self._lines_for(task):
            with _warm_lock:
                if line not in _warm:
                    self._line(line).warm_up()
                    _warm.add(line)

    def preload(self) -> None:
        """Pay what AG2 Classic costs once, if it is installed; blocking."""
        if _installed("autogen"):
            self.warm_up_for(ParallelTask("preload"))

    def is_warm_for(self, task: ParallelTask) -> bool:
        """Whether what the task may need was paid already."""
        return _warm.issuperset(self._lines_for(task))

    def _lines_for(self, task: ParallelTask) -> list[str]:
        """The lines of AG2 that the task may need: what a factory makes shows when it is called."""
        if task.run is not None or self._functions.recognises(task.agent):
            return []
        if task.agent is None:
            return [self._line_of_description(task)]
        line = self._line_of(task.agent)
        if line is not None:
            return [line]
        loaded = [line for line, (_, module) in _LINES.items() if module in sys.modules]
        if loaded:
            return loaded
        installed = [line for line, (module, _) in _LINES.items() if _installed(module)]
        return installed if len(installed) == 1 else []

    def may_need_classic(self, task: ParallelTask) -> bool:
        """Whether the task may need AG2 Classic."""
        return "classic" in self._lines_for(task)

    def is_live(self, agent: object) -> bool:
        """Whether `agent` is an agent or a team of AG2's, and no factory of one."""
        return agent is not None and self._line_of(agent) is not None

    def _line_of_description(self, task: ParallelTask) -> str:
        of_the_runner = task.agent_config is None and ag2_kinds.is_model_config(self._llm_config)
        return "ag2" if of_the_runner or ag2_kinds.describes_agent(task.agent_config) else "classic"

    def _line_of(self, agent: object) -> str | None:
        for line, (_, module) in _LINES.items():
            if (module in sys.modules or ag2_kinds.is_team(agent)) and self._line(line).recognises(agent):
                return line
        return None

    def _line(self, line: str) -> Framework:
        with self._lock:
            if line not in self._lines:
                self._lines[line] = _made(line, self._llm_config, keyless=self._keyless)
            return self._lines[line]


def _made(line: str, llm_config: Any, *, keyless: bool) -> Framework:
    if line == "ag2":
        from ag2_parallel.frameworks.ag2.framework import Ag2Framework

        return Ag2Framework(llm_config, keyless=keyless)
    from ag2_parallel.frameworks.classic.framework import ClassicFramework

    if ag2_kinds.is_model_config(llm_config):
        return ClassicFramework(keyless=keyless, foreign=llm_config)
    return ClassicFramework(llm_config, keyless=keyless)


def _worded(texts: list[str]) -> list[Problem]:
    return [Problem(text) for text in texts]


def _installed(module: str) -> bool:
    return module in sys.modules or importlib.util.find_spec(module) is not None

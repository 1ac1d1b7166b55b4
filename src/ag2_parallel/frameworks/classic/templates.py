"""The templates of a run: live agents given as such, and one agent for each distinct configuration."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel import validation
from ag2_parallel.errors import UnsupportedAgentError
from ag2_parallel.frameworks.classic.async_tools import has_served
from ag2_parallel.frameworks.classic.build import DEFAULT_NAME, build_agent, fingerprint
from ag2_parallel.frameworks.classic.members import members_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.tasks import ParallelTask

_MOST_BUILT: Final = 64
"""Built templates that are kept; a data set may have a configuration of its own in every row."""


class Templates:
    """Makes each template once, however many threads ask for it at once. Safe from any thread."""

    def __init__(self, llm_config: Any, *, keyless: bool = False) -> None:
        """`llm_config` is for configurations without one; `keyless`: they need no key."""
        self._keyless = keyless
        self._llm_config = llm_config
        self._lock = threading.Lock()
        self._made: OrderedDict[Any, tuple[Any, Future[Any]]] = OrderedDict()
        self._live: dict[int, tuple[Any, Future[Any]]] = {}

    def refusals(self, task_name: str, root: Any) -> list[str]:
        """Why a live agent or team cannot be copied."""
        served = [agent.name for agent in members_of(root).agents if has_served(agent)]
        if served:
            return [validation.has_served(task_name, name) for name in served]
        return [
            f'task "{task_name}": its agent cannot be copied for each attempt: {refusal}'
            for refusal in self._of(root).refusals
        ]

    def copied(self, task_name: str, root: Any) -> Any:
        """A copy of a live agent or team.

        Raises:
            UnsupportedAgentError: If it cannot be copied.
        """
        problems = self.refusals(task_name, root)
        if problems:
            raise UnsupportedAgentError(problems)
        return self._of(root).clone()

    def built(self, task: ParallelTask) -> Any:
        """A copy of the agent that the task's configuration describes; its name is the caller's to set."""
        config = dict(task.agent_config or {})
        if config.get("llm_config") is None:
            config["llm_config"] = self._llm_config or False
        config.pop("name", None)
        template = self._once(
            self._made,
            fingerprint(config),
            config,
            lambda: _template(build_agent(config, DEFAULT_NAME, keyless=self._keyless)),
        )
        with self._lock:
            while len(self._made) > _MOST_BUILT:
                self._made.popitem(last=False)
        return template.clone()

    def _of(self, root: Any) -> Any:
        key = tuple(map(id, root)) if isinstance(root, list | tuple) else id(root)
        return self._once(self._live, key, root, lambda: _template(root))

    def _once(self, cache: Any, key: Any, kept: Any, make: Callable[[], Any]) -> Any:
        """What the first thread to ask made; `kept` stays alive with it, so that ids in the key stay true."""
        with self._lock:
            held, first = cache.get(key), False
            if held is None:
                held, first = (kept, Future()), True
                cache[key] = held
            elif isinstance(cache, OrderedDict):
                cache.move_to_end(key)
        future: Future[Any] = held[1]
        if first:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    cache.pop(key, None)
                future.set_exception(error)
        return future.result()


def _template(root: Any) -> Any:
    from ag2_parallel.frameworks.classic.cloning import Template

    return Template(root)

"""The templates of a run: each live agent or team surveyed once."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

from ag2_parallel import validation
from ag2_parallel.errors import UnsupportedAgentError
from ag2_parallel.frameworks.ag2.questions import has_served


class Templates:
    """Makes each template once, however many threads ask for it at once. Safe from any thread."""

    def __init__(self) -> None:
        """None is made yet."""
        self._lock = threading.Lock()
        self._made: dict[int, tuple[Any, Future[Any]]] = {}

    def refusals(self, task_name: str, root: Any) -> list[str]:
        """Why a live agent or team cannot be copied."""
        if has_served(root):
            return [validation.has_served(task_name, root.name)]
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

    def _of(self, root: Any) -> Any:
        with self._lock:
            held = self._made.get(id(root))
            first = held is None
            if held is None:  # `root` is kept, so that its id stays its own
                held = self._made[id(root)] = (root, Future())
        if first:
            from ag2_parallel.frameworks.ag2.template import Template

            try:
                held[1].set_result(Template(root))
            except BaseException as error:
                with self._lock:
                    self._made.pop(id(root), None)
                held[1].set_exception(error)
        return held[1].result()

"""Questions of agents to a person: refused, or put to the user's hook one at a time."""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope, HumanInput
    from ag2_parallel.tasks import HumanInputRequest

_TURN = 0.05
"""Seconds between two looks at the stop signal while another task's question is being answered."""


class HumanInputRefusedError(Exception):
    """Raised where an agent asks a person and nobody may be asked."""

    kind = "human_input"


class Questions:
    """The questions of one run."""

    def __init__(self, hook: HumanInput | None) -> None:
        """Without a hook every question is refused."""
        self._hook = hook
        self._turn = threading.Lock()

    def ask(self, request: HumanInputRequest, scope: AttemptScope) -> str:
        """Put the question to the hook when no other task's question is being answered.

        Raises:
            HumanInputRefusedError: If there is no hook.
            TaskStopped: If the task is stopped while its question waits.
        """
        if self._hook is None:
            who = f'agent "{request.agent}"' if request.agent else "an agent"
            msg = (
                f'task "{request.task}": {who} asked for human input ({request.prompt.strip()!r}) and nobody is there to answer; '
                'pass human_input=your_function to the runner, or let the agent ask nobody (human_input_mode="NEVER" in AG2 '
                "Classic, a hitl_hook of its own in AG2 1.x)"
            )
            raise HumanInputRefusedError(msg)
        with scope.waiting():
            while not self._turn.acquire(timeout=_TURN):
                scope.check()
            try:
                answer = self._hook(request)
                if inspect.iscoroutine(answer):
                    answer = scope.run_coroutine(answer)
                if not isinstance(answer, str):
                    msg = f'task "{request.task}": the human_input function returned {type(answer).__name__}, not text'
                    raise HumanInputRefusedError(msg)
                return answer
            finally:
                self._turn.release()

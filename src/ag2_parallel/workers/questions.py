"""Questions of agents to a person: refused, or put to the user's hook one at a time."""

from __future__ import annotations

import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

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

    def ask(
        self,
        request: HumanInputRequest,
        scope: AttemptScope,
        on_stop: Callable[[Callable[[], None]], AbstractContextManager[None]],
    ) -> str:
        """Put the question to the hook when no other task's question is being answered.

        The question of a task that is stopped gives its turn to the next one, whenever its hook comes back.

        Args:
            request: The question.
            scope: The attempt that asks.
            on_stop: While inside, calls what it is given when the attempt is stopped.

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
            with self._one_turn(on_stop):
                answer = self._hook(request)
                if inspect.iscoroutine(answer):
                    answer = scope.run_coroutine(answer)
                if not isinstance(answer, str):
                    msg = f'task "{request.task}": the human_input function returned {type(answer).__name__}, not text'
                    raise HumanInputRefusedError(msg)
                return answer

    @contextmanager
    def _one_turn(self, on_stop: Callable[[Callable[[], None]], AbstractContextManager[None]]) -> Iterator[None]:
        """The turn is over when this is left, or when the attempt is stopped."""
        over = threading.Lock()

        def end() -> None:
            if over.acquire(blocking=False):
                self._turn.release()

        try:
            with on_stop(end):
                yield
        finally:
            end()

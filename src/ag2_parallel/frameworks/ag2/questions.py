"""Questions of AG2 1.x agents to a person, put to the runner's hook.

To be imported once `ag2` is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ag2.annotations import Context  # noqa: TC002 - the stream reads the annotations
from ag2.events import HumanInputRequest as Ag2Request
from ag2.events import HumanMessage

from ag2_parallel.frameworks.ag2.task_stream import agent_of
from ag2_parallel.tasks import HumanInputRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ag2_parallel.ports import AttemptScope


def route_questions(agent: Any, scope: AttemptScope, task_name: str) -> None:
    """Let an agent of this attempt ask the runner's hook, unless it has a hook of its own.

    Agents behind tools need none: AG2 hands their questions on to the agent that called them.
    """
    if not agent.has_hitl_hook:
        agent._hitl_hook = _Hook(scope, task_name).of_a_turn  # noqa: SLF001 - `Agent.hitl_hook` makes an argument model of pydantic's


def has_served(agent: Any) -> bool:
    """Whether an agent is, or was, an attempt's own: a factory made it for that, and somebody kept it."""
    return isinstance(getattr(getattr(agent, "_hitl_hook", None), "__self__", None), _Hook)


class _Hook:
    """What AG2 makes of a hook, for one attempt."""

    def __init__(self, scope: AttemptScope, task_name: str) -> None:
        self._scope = scope
        self._task_name = task_name

    def of_a_turn(self, middleware: Iterable[Any]) -> Callable[[Ag2Request, Context], Awaitable[None]]:
        """What answers the questions of a turn, its middleware around it."""
        asked: Callable[[Any, Any], Awaitable[Any]] = self._asked
        for each in middleware:
            asked = partial(each.on_human_input, asked)

        async def answer(event: Ag2Request, context: Context) -> None:
            await context.send(await asked(event, context))

        return answer

    async def _asked(self, event: Any, context: Any) -> Any:
        request = HumanInputRequest(task=self._task_name, agent=agent_of(context), prompt=event.content)
        self._scope.sign_of_life()
        answer = await self._scope.run_blocking(partial(self._put, request))
        self._scope.check()
        return HumanMessage.ensure_message(answer, parent_id=event.id)

    def _put(self, request: HumanInputRequest) -> str:
        with self._scope.waiting():
            return self._scope.ask(request)

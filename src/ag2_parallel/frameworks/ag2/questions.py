"""Questions of AG2 1.x agents to a person, put to the runner's hook."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ag2_parallel.tasks import HumanInputRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ag2_parallel.ports import AttemptScope


def route_questions(agent: Any, scope: AttemptScope, task_name: str) -> None:
    """Let an agent of this attempt ask the runner's hook, unless it has a hook of its own.

    Agents behind tools need none: AG2 hands their questions on to the agent that called them.
    """
    if not agent.has_hitl_hook:
        agent._hitl_hook = _hook(scope, task_name)  # noqa: SLF001 - `Agent.hitl_hook` makes an argument model of pydantic's


def _hook(scope: AttemptScope, task_name: str) -> Callable[[Iterable[Any]], Callable[[Any, Any], Awaitable[None]]]:
    from ag2.events import HumanMessage

    from ag2_parallel.frameworks.ag2.task_stream import agent_of

    async def ask(event: Any, context: Any) -> Any:
        request = HumanInputRequest(task=task_name, agent=agent_of(context), prompt=event.content)
        scope.sign_of_life()
        answer = await scope.run_blocking(partial(_asked, scope, request))
        scope.check()
        return HumanMessage.ensure_message(answer, parent_id=event.id)

    def with_middleware(middleware: Iterable[Any]) -> Callable[[Any, Any], Awaitable[None]]:
        asked: Callable[[Any, Any], Awaitable[Any]] = ask
        for each in middleware:
            asked = partial(each.on_human_input, asked)

        async def put(event: Any, context: Any) -> None:
            await context.send(await asked(event, context))

        return put

    return with_middleware


def _asked(scope: AttemptScope, request: HumanInputRequest) -> str:
    with scope.waiting():
        return scope.ask(request)

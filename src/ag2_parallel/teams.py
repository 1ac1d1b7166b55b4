"""Teams of AG2 1.x agents on a hub, and running one in code of your own.

As a task's `agent`, or returned by its factory, a `WorkflowTeam` is run by the runner. In a `run` function:

    async def discuss(ctx):
        config = ctx.llm_config(OpenAIConfig("gpt-5-mini"))
        team = WorkflowTeam([Agent("planner", config=config), Agent("writer", config=config)])
        return (await run_workflow(team, ctx.prompt)).answer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import MissingExtraError
from ag2_parallel.frameworks.ag2.workflow_team import WorkflowOutcome, WorkflowTeam

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["WorkflowOutcome", "WorkflowTeam", "run_workflow"]


async def run_workflow(
    team: WorkflowTeam,
    prompt: str,
    *,
    context: Mapping[str, Any] | None = None,
    max_turns: int | None = None,
    on_message: Callable[[dict[str, Any]], object] | None = None,
) -> WorkflowOutcome:
    """Open a hub for the team, send the prompt on a workflow channel, and wait for the channel's conclusion.

    The hub is closed whatever happens, and with it whatever the members were doing.

    Args:
        team: Fresh agents: registering them with a hub changes them.
        prompt: What the user sends.
        context: The channel's context variables at the beginning.
        max_turns: Messages after which the channel is closed, the prompt counted; None: the graph's own.
        on_message: Called with each message as it is posted: `role`, `name` and `content`.

    Returns:
        The transcript and what it came to.

    Raises:
        MissingExtraError: If AG2 1.x is not installed.
        InvalidAnswerError: If a member's turn ended without a word, or none said anything.
        TimeoutError: If the channel outlived the team's `ttl`.
        Exception: Whatever a member raised.
    """
    try:
        from ag2_parallel.frameworks.ag2 import workflow
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ag2":
            raise
        raise MissingExtraError('AG2 1.x is not installed: pip install "ag2-parallel[ag2]"') from error
    return await workflow.run_workflow(team, prompt, context=context, max_turns=max_turns, on_message=on_message)

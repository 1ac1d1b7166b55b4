"""Running a team of AG2 1.x on a hub: from the prompt to the channel's conclusion.

A hub tells nobody that a channel is stuck. An agent that raises, or that has nothing to say, posts nothing, and the
channel would wait for it as long as it may live. So each member's turn is watched, and the first that comes to nothing
ends the run with what was raised.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ag2.annotations import Context  # noqa: TC002 - AG2 reads the annotations
from ag2.events import BaseEvent  # noqa: TC002 - likewise
from ag2.knowledge import MemoryKnowledgeStore
from ag2.middleware import BaseMiddleware
from ag2.network import (
    EV_PACKET,
    EV_TEXT,
    BaseHubListener,
    Hub,
    TransitionGraph,
    default_handler,
)

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.frameworks import output_types
from ag2_parallel.frameworks.ag2.record import Record
from ag2_parallel.frameworks.ag2.task_stream import agent_of
from ag2_parallel.frameworks.ag2.transcript import text_of
from ag2_parallel.frameworks.ag2.workflow_team import WorkflowOutcome, WorkflowTeam
from ag2_parallel.frameworks.failures import InvalidAnswerError
from ag2_parallel.ports import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import ExitStack

    from ag2_parallel.ports import Work


async def run_workflow(
    team: WorkflowTeam,
    prompt: str,
    *,
    context: Mapping[str, Any] | None = None,
    max_turns: int | None = None,
    on_message: Callable[[dict[str, Any]], object] | None = None,
) -> WorkflowOutcome:
    """Open a hub for the team, send the prompt on a workflow channel, and wait for the channel's conclusion.

    Args:
        team: Fresh agents; the hub is theirs alone.
        prompt: What the user sends.
        context: The channel's context variables at the beginning.
        max_turns: Messages after which the channel is closed, the prompt counted; None: the graph's own.
        on_message: Called with each message as it is posted.

    Returns:
        The transcript and what it came to.

    Raises:
        InvalidAnswerError: If a member's turn ended without a word, or none said anything.
        TimeoutError: If the channel outlived the team's `ttl`.
        Exception: Whatever a member raised.
    """
    hub = await Hub.open(MemoryKnowledgeStore(), expectation_sweep_interval=0)
    channel = _Channel(hub, team, on_message)
    try:
        return await channel.run(prompt, dict(context or {}), max_turns)
    finally:
        channel.leave()
        await hub.close()


class _Channel(BaseHubListener):  # type: ignore[misc] # ag2 is not looked into
    """One team's channel, listened to."""

    def __init__(self, hub: Hub, team: WorkflowTeam, on_message: Callable[[dict[str, Any]], object] | None) -> None:
        self._hub = hub
        self._team = team
        self._on_message = on_message
        self._id: str | None = None
        self._user: Any = None
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._messages: list[dict[str, Any]] = []
        self._finished = False

    async def run(self, prompt: str, context: dict[str, Any], max_turns: int | None) -> WorkflowOutcome:
        from ag2 import Agent

        self._hub.register_listener(self)
        self._user = await self._hub.register(Agent(self._team.user), attach_plugin=False)
        self._user.on_envelope(partial(self._at_the_user, self._user))
        members = []
        for agent in self._team.agents:
            agent.insert_middleware(partial(_Watch, self._fail))
            member = await self._hub.register(agent, attach_plugin=self._team.network_tools)
            member.on_envelope(partial(self._at_a_member, member))
            members.append(member.agent_id)
        graph = self._graph(self._user.agent_id, members, max_turns)
        knobs = {"graph": graph.to_dict(), "context_vars": context}
        channel = await self._user.open(type="workflow", target=members, knobs=knobs, ttl=self._team.ttl)
        self._id = channel.channel_id
        await channel.send(prompt)
        reason = await self._ended
        said = [message["content"] for message in self._messages[1:] if message["content"].strip()]
        if not said:
            raise InvalidAnswerError(f"the team ended without an answer (the channel was closed: {reason})")
        state: Any = self._hub.adapter_state(self._id)
        return WorkflowOutcome(
            answer=said[-1],
            messages=self._messages,
            close_reason=reason,
            finished=self._finished,
            context=dict(getattr(state, "context_vars", {})),
        )

    def leave(self) -> None:
        """Nobody waits for the end any more."""
        if not self._ended.cancel() and not self._ended.cancelled():
            self._ended.exception()  # seen, even if something else was raised first

    def _graph(self, user: str, members: list[str], max_turns: int | None) -> Any:
        made: Any = self._team.graph
        graph = TransitionGraph.sequence([user, *members]) if made is None else made(user, members)
        if not isinstance(graph, TransitionGraph):
            raise ConfigurationError(f"WorkflowTeam.graph returned a {type(graph).__name__}, not a TransitionGraph")
        if max_turns is not None:
            graph = replace(graph, max_turns=max_turns if graph.max_turns is None else min(max_turns, graph.max_turns))
        return graph

    # ---- what the hub tells

    async def on_envelope_posted(self, envelope: Any, metadata: Any) -> None:
        """Add what was said to the transcript."""
        if envelope.event_type not in {EV_TEXT, EV_PACKET} or metadata.channel_id != self._id:
            return
        data = envelope.event_data
        routing = data.get("routing") or {}
        self._finished = self._finished or routing.get("kind") == "finish"
        by_user = envelope.sender_id == self._user.agent_id
        text = str(data.get("text") or data.get("body") or "") or str(routing.get("reason") or "")
        message = {
            "role": "user" if by_user else "assistant",
            "name": self._hub.name_for(envelope.sender_id),
            "content": text,
        }
        self._messages.append(message)
        if self._on_message is not None:
            self._on_message(message)

    async def on_channel_event(self, channel_id: str, kind: str, payload: dict[str, Any]) -> None:
        """Note the channel's end."""
        if channel_id == self._id and kind == "closed":
            self._end(str(payload.get("reason") or "closed"))
        elif channel_id == self._id and kind == "expired":
            self._fail(TimeoutError(f"the team did not come to an end within its ttl of {self._team.ttl} s"))

    async def on_turn_failed(self, channel_id: str, agent_id: str, envelope_id: str, exc: BaseException) -> None:  # noqa: ARG002 - the hub's signature
        """Note what a member raised."""
        self._fail(exc)

    # ---- turns

    async def _at_a_member(self, client: Any, envelope: Any) -> None:
        """A member's turn, if it is one: AG2's own handling, whose end is watched."""
        try:
            await default_handler(envelope, client)
        except BaseException as error:  # what no `Exception` is, the hub would not tell of
            self._fail(error)
            raise
        if self._waits_for(client.agent_id, envelope):
            name = self._hub.name_for(client.agent_id)
            self._fail(InvalidAnswerError(f'agent "{name}" of the team ended its turn without a word'))

    async def _at_the_user(self, client: Any, envelope: Any) -> None:
        """The user has nothing to add: where the graph comes back to it, the team is done."""
        if self._waits_for(client.agent_id, envelope):
            self._end("back_at_the_user")

    def _waits_for(self, agent_id: str, envelope: Any) -> bool:
        """Whether the channel is open and still waits for that agent's answer to that very envelope."""
        state: Any = self._hub.adapter_state(envelope.channel_id)
        return (
            envelope.event_type in {EV_TEXT, EV_PACKET}
            and not self._ended.done()
            and getattr(state, "expected_next_speaker", None) == agent_id
            and getattr(state, "last_envelope_id", None) == envelope.envelope_id
        )

    def _end(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    def _fail(self, error: BaseException) -> None:
        if not self._ended.done():
            if isinstance(error, StopIteration | asyncio.CancelledError):  # no future takes them
                error = RuntimeError(f"a member of the team was ended by {type(error).__name__}")
            self._ended.set_exception(error)


class _Watch(BaseMiddleware):  # type: ignore[misc] # ag2 is not looked into
    """Tells of what a member's turn raises before the hub, which would write it to the log, hears of it."""

    def __init__(self, fail: Callable[[BaseException], None], event: BaseEvent, context: Context) -> None:
        super().__init__(event, context)
        self._fail = fail

    async def on_turn(self, call_next: Any, event: BaseEvent, context: Context) -> Any:
        """See `ag2.middleware.BaseMiddleware`."""
        try:
            return await call_next(event, context)
        except Exception as error:
            self._fail(error)
        raise asyncio.CancelledError("the team has ended")


class TeamTalk:
    """One attempt of a task whose agent is a `WorkflowTeam`."""

    def __init__(self, team: WorkflowTeam, work: Work) -> None:
        """Nothing was said yet."""
        self._team = team
        self._work = work
        self._record = Record(work.scope, work.task.name)
        self.variables: Mapping[str, Any] | None = None

    async def answer(self) -> Answer:
        """Run the team to its end; on the attempt's loop."""
        task = self._work.task
        for agent in self._team.agents:
            agent.add_observer(_Witness(self._record))
        outcome = await run_workflow(
            self._team, self._prompt(), context=self._work.ctx.context, max_turns=task.max_turns, on_message=self._said
        )
        self.variables = outcome.context
        summary = None if task.summary_method is None else outcome.answer
        self._work.scope.draft.summary = summary
        output = summary if task.output_type is None else output_types.validated(task.output_type, outcome.answer)
        return Answer(output=output, summary=summary, stop_reason=_stop_reason(outcome))

    def _prompt(self) -> str:
        prompt = self._work.ctx.prompt
        if isinstance(prompt, list):
            if len(prompt) != 1:
                raise ConfigurationError(
                    f'task "{self._work.task.name}": a WorkflowTeam takes one message, and its prompt has {len(prompt)}'
                )
            prompt = prompt[0]
        return prompt if isinstance(prompt, str) else text_of(prompt.get("content"))

    def _said(self, message: dict[str, Any]) -> None:
        self._work.scope.sign_of_life()
        self._record.say(message)


class _Witness:
    """Tells the record what a member does in its turns, and stops the member where the task has to end."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def register(self, stack: ExitStack, context: Any) -> None:
        """See `ag2.observers.Observer`."""
        stack.enter_context(context.stream.sub_scope(self._note))

    async def _note(self, event: BaseEvent, context: Context) -> None:
        self._record.take(event, agent_of(context), in_conversation=False)


def _stop_reason(outcome: WorkflowOutcome) -> str:
    if outcome.close_reason == "max_turns":
        return "max_turns"
    return "termination_message" if outcome.finished else "answered"

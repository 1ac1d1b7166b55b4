"""The stream that AG2 reports to while a task's chat runs: checkpoint, transcript of events, console, human input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ag2_parallel.events import AgentActive, AgentEvent
from ag2_parallel.tasks import HumanInputRequest

if TYPE_CHECKING:
    from collections.abc import Collection

    from ag2_parallel.ports import AttemptScope

_MESSAGES: Final = frozenset({"text", "tool_call", "tool_response", "function_call", "function_response"})
"""Events that stand for a message of the chat."""

_ASKED_AGENT: Final = re.compile(r"\AReplying as (?P<name>.+?)\. ")
"""How AG2's question to a person begins where it names the agent."""


class Termination(NamedTuple):
    """AG2's word on why a chat, or an agent's part in it, ended."""

    reason: str
    sender: str | None
    recipient: str | None


class TaskStream:
    """AG2's IOStream of one attempt. Every event is a checkpoint of the task."""

    def __init__(self, scope: AttemptScope, task_name: str) -> None:
        """Nothing was reported yet."""
        self._scope = scope
        self._task_name = task_name
        self._speakers: Collection[str] = ()
        self._refused: BaseException | None = None
        self._tools: dict[str, int] = {}
        self.terminations: tuple[Termination, ...] = ()

    def listen_to(self, speakers: Collection[str]) -> None:
        """Name the agents of the task's own chat: others, of nested chats and speaker selection, do not end it."""
        self._speakers = speakers

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:  # noqa: ARG002 - AG2's Protocol
        """Keep what AG2 or a tool prints to the stream."""
        self._scope.draft.console.append(sep.join(map(str, objects)) + end)

    def send(self, message: Any) -> None:
        """Take note of an event, and stop the task here if it has to end."""
        scope = self._scope
        scope.sign_of_life()
        content = getattr(message, "content", message)
        name = str(getattr(message, "type", type(message).__name__))
        at_work = scope.draft.agent, scope.draft.tool
        self._note(name, content)
        if (scope.draft.agent, scope.draft.tool) != at_work:
            scope.emit(AgentActive, agent=scope.draft.agent, tool=scope.draft.tool)
        if scope.observed:
            scope.emit(AgentEvent, name=name, agent=_agent(content), content=scope.redactor.value(_plain(content)))
        try:
            message.print(self.print)
        except Exception as error:  # a broken event must not break the chat
            self.print(f"[{name}: cannot be shown: {type(error).__name__}]")
        if self._refused is not None:  # AG2 may have turned it into a tool's text
            raise self._refused
        scope.check()

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """Put an agent's question to the user's hook.

        Raises:
            Exception: What the scope refuses it with; raised again at the next event if AG2 swallows it.
        """
        named = _ASKED_AGENT.match(prompt)
        agent = named["name"] if named else self._scope.draft.agent
        request = HumanInputRequest(task=self._task_name, agent=agent, prompt=prompt, password=password)
        self._scope.sign_of_life()
        try:
            with self._scope.waiting():
                answer = self._scope.ask(request)
                if request.password:
                    self._scope.redactor.learn({"password": answer})
        except Exception as refusal:
            self._refused = refusal
            raise
        self._scope.check()
        return answer

    def _note(self, name: str, content: Any) -> None:
        draft = self._scope.draft
        if name in _MESSAGES:
            if content.sender in self._speakers:
                draft.last_speaker = content.sender
            draft.agent = content.recipient
        elif name == "group_chat_run_chat":
            draft.agent = content.speaker
        elif name == "execute_function":
            draft.tool = content.func_name
            self._tools[_call(content)] = self._scope.trace.begin("tool", str(content.func_name))
        elif name == "executed_function":
            draft.tool = None
            self._tool_ended(content)
        elif name == "termination":
            end = Termination(content.termination_reason, content.sender, content.recipient)
            if end.sender in self._speakers:
                self.terminations = (*self.terminations, end)

    def _tool_ended(self, content: Any) -> None:
        span = self._tools.pop(_call(content), None)
        if span is not None:
            failed = getattr(content, "is_exec_success", True) is False
            agent = getattr(content, "recipient", None)
            who = agent if isinstance(agent, str) else getattr(agent, "name", "")
            self._scope.trace.end(span, f"{who}, failed" if failed else str(who or ""))


def _call(content: Any) -> str:
    """What an event of a tool's end has in common with that of its start."""
    return str(getattr(content, "call_id", None) or content.func_name)


def _agent(content: Any) -> str | None:
    for name in ("sender", "speaker", "recipient", "source_agent"):
        value = getattr(content, name, None)
        if value is not None:
            return value if isinstance(value, str) else getattr(value, "name", None)
    return None


def _plain(content: Any) -> dict[str, Any]:
    try:
        plain = content.model_dump(mode="json")
    except Exception:  # what pydantic cannot turn into JSON, such as a tool's own object
        plain = {name: str(value) for name, value in vars(content).items()}
    return (
        {name: value for name, value in plain.items() if name != "uuid"}
        if isinstance(plain, dict)
        else {"value": plain}
    )

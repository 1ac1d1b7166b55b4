"""What an attempt's agents say and do: into the draft, into the runner's events, onto the console."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.events import AgentEvent
from ag2_parallel.frameworks.ag2.transcript import answer_to_call, message_of, text_of, unanswered
from ag2_parallel.frameworks.failures import traceback_text

if TYPE_CHECKING:
    from ag2_parallel.ports import AttemptScope

_log = logging.getLogger("ag2_parallel.tools")

_RULE: Final = "-" * 80


class Record:
    """Of one attempt. Its methods are called on the attempt's loop."""

    def __init__(self, scope: AttemptScope, task_name: str) -> None:
        """Nothing happened yet."""
        self._scope = scope
        self._task_name = task_name
        self._at_work: dict[str, str] = {}
        self.answers = 0
        """Answers of models in the conversation itself."""

    def take(self, event: Any, agent: str, *, in_conversation: bool) -> None:
        """Take note of an event.

        Args:
            event: AG2's.
            agent: The agent whose stream it is on.
            in_conversation: Whether that is the task's own conversation, and not one of an agent behind a tool.
        """
        scope = self._scope
        scope.sign_of_life()
        scope.draft.agent = agent
        if in_conversation and (message := message_of(event, agent)) is not None:
            self.say(message)
            self.answers += message["role"] == "assistant"
        self._follow_tool(event, agent)
        if scope.observed:
            content = scope.redactor.value(_plain(event))
            scope.emit(AgentEvent, name=type(event).__name__, agent=agent, content=content)

    def ensure_said(self, response: Any, agent: str) -> None:
        """Add an answer that never was on the stream, as middleware may give one."""
        history = self._scope.draft.chat_history
        if not history or history[-1]["role"] != "assistant":
            self.remember(response, agent)

    def remember(self, event: Any, agent: str) -> None:
        """Add what was said before the conversation began to the transcript."""
        from ag2.events import ToolResultsEvent

        for each in event.results if isinstance(event, ToolResultsEvent) else [event]:
            if (message := message_of(each, agent)) is not None:
                self.say(message)

    def say(self, message: dict[str, Any]) -> None:
        """Add a message to the transcript, and show it."""
        draft = self._scope.draft
        draft.chat_history.append(message)
        if message["role"] == "assistant":
            draft.last_speaker = message["name"]
        calls = [
            f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls", ())
        ]
        text = "\n".join([text_of(message["content"]), *calls])
        draft.console.append(f"{message['name']}:\n\n{text}\n\n{_RULE}\n")

    def close(self, why: str) -> None:
        """Answer the tool calls that nothing will answer any more, so that the transcript can be continued."""
        for call_id, tool in unanswered(self._scope.draft.chat_history):
            self.say(answer_to_call(call_id, tool, f"This tool call was not completed: {why}."))

    def _follow_tool(self, event: Any, agent: str) -> None:
        from ag2.events import ToolCallEvent, ToolErrorEvent, ToolResultEvent

        if isinstance(event, ToolCallEvent):
            self._at_work[event.id] = event.name
        elif isinstance(event, ToolResultEvent):
            self._at_work.pop(event.parent_id, None)
        else:
            return
        self._scope.draft.tool = next(reversed(self._at_work.values()), None)
        if isinstance(event, ToolErrorEvent):
            self._tell_failure(event, agent)

    def _tell_failure(self, event: Any, agent: str) -> None:
        text = traceback_text(event.error, self._scope.redactor)
        _log.info(
            'task "%s": tool "%s" of agent "%s" failed; the agent was told\n%s',
            self._task_name, event.name, agent, text,
            extra={"task": self._task_name, "tool": event.name},
        )  # fmt: skip
        if self._scope.observed:
            content = {"tool": event.name, "error": type(event.error).__name__, "traceback": text}
            self._scope.emit(AgentEvent, name="tool_failed", agent=agent, content=content)


def _plain(event: Any) -> dict[str, Any]:
    """An event's fields as plain data; what JSON has not is told by its text."""
    try:
        plain = event.to_dict()
        return dict(json.loads(json.dumps(plain, default=str)))
    except Exception:  # an event of the user's own may hold anything
        return {"text": repr(event)}

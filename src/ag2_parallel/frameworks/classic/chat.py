"""A running chat of one attempt: who starts it, with whom, and how it is asked and read.

Every form of task comes down to an initiator and a recipient; in a team the recipient is the
group's manager.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import ConfigurationError
from ag2_parallel.frameworks.classic.kinds import is_manager
from ag2_parallel.frameworks.classic.one_shot_user import one_shot_user
from ag2_parallel.frameworks.classic.stop_reasons import says_terminate, stop_reason
from ag2_parallel.frameworks.classic.transcript import calls_tool, last_answer, text_of
from ag2_parallel.frameworks.failures import InvalidAnswerError

if TYPE_CHECKING:
    from ag2_parallel.frameworks.classic.stream import TaskStream
    from ag2_parallel.tasks import ParallelTask

_BY_AGENT = ("_oai_messages", "_consecutive_auto_reply_counter", "_max_consecutive_auto_reply_dict", "reply_at_receive")


@dataclass(slots=True)
class Chat:
    """Who talks to whom.

    Attributes:
        initiator: Sends the prompt.
        recipient: Gets it: an agent, or the manager of a group.
        members: Every agent whose messages belong to the transcript.
        user: The one-shot user, where the runner made the initiator.
        max_turns: Given to `initiate_chat`; a group has its own number of rounds instead.
        summary_method: How the answer is made from the transcript.
        prompts: Messages at the transcript's beginning that are no answers.
    """

    initiator: Any
    recipient: Any
    members: Sequence[Any]
    user: Any = None
    max_turns: int | None = None
    summary_method: Any = "last_msg"
    prompts: int = 0

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The transcript, live: AG2 appends to this very list."""
        if is_manager(self.recipient):
            messages: list[dict[str, Any]] = self.recipient.groupchat.messages
        else:
            messages = self.initiator._oai_messages[self.recipient]  # noqa: SLF001 - `chat_messages` is the same
        return messages

    def ask(self, prompt: Any, task: ParallelTask, stream: TaskStream) -> tuple[str | None, str]:
        """Send a prompt, wait for the chat's end, and say what it came to.

        Args:
            prompt: Text, a message, or a list of messages whose last one is sent and whose others become history.
            task: For its name and summary arguments.
            stream: Where AG2 reports to.

        Returns:
            The summary, None where none was asked for, and the stop reason.

        Raises:
            InvalidAnswerError: If the chat ended without an answer.
        """
        history, message = _split(prompt, task.name)
        fresh = not history and not self.prompts
        for earlier in history:
            self._remember(earlier)
        self.prompts = 1 if fresh else len(self.messages) + 1
        stream.terminations = ()
        result = self.initiator.initiate_chat(
            self.recipient,
            message=message,
            clear_history=fresh,
            max_turns=self.max_turns,
            summary_method=self._summariser(task),
            summary_args=copy.copy(dict(task.summary_args or {})),  # AG2 keeps its cache in it: never a shared one
        )
        return self._outcome(result.summary, task, stream)

    def part(self) -> None:
        """The chat is over: the user that the runner made forgets whom it spoke with, so that all are freed without the garbage collector."""
        if self.user is not None:
            for by_agent in _BY_AGENT:
                getattr(self.user, by_agent).clear()

    def _outcome(self, summary: Any, task: ParallelTask, stream: TaskStream) -> tuple[str | None, str]:
        messages = self.messages
        replies = self._replies()
        reason = self._reason(stream, messages)
        text = last_answer(replies) if self.summary_method is None else str(summary)
        empty = not text.strip() and not callable(self.summary_method)
        if not replies or (empty and not calls_tool(replies[-1])):
            raise InvalidAnswerError(
                f'task "{task.name}": the chat with "{self.recipient.name}" ended without an answer '
                f"(stop reason: {reason}){self._why_silent()}"
            )
        return (None if self.summary_method is None else text), reason

    def _why_silent(self) -> str:
        if self.recipient.client is not None or is_manager(self.recipient):
            return ""
        return f'; "{self.recipient.name}" has no model: give it an llm_config (that of the runner is for agent_config alone)'

    def _last_answer(self, _sender: object, _recipient: object, _arguments: object) -> str:
        return last_answer(self._replies())

    def _replies(self) -> list[dict[str, Any]]:
        """What followed the prompt, without what a tool executor or a user without a model said for want of words."""
        replies = self.messages[self.prompts :]
        wordless = {agent.name for agent in self.members if agent.client is None}
        while replies and replies[-1].get("name") in wordless and _is_empty(replies[-1]):
            replies.pop()
        return replies

    def _reason(self, stream: TaskStream, messages: Sequence[Mapping[str, Any]]) -> str:
        last = messages[-1] if messages else None
        reason = stop_reason(stream.terminations, user=self.user.name if self.user else None, last_message=last)
        if (
            reason == "answered" and self.max_turns is not None and not stream.terminations
        ):  # AG2 left its loop silently
            counter = self.initiator._consecutive_auto_reply_counter[self.recipient]  # noqa: SLF001
            if counter >= self.recipient.max_consecutive_auto_reply():
                return "auto_reply_limit"
            if last is not None and self.recipient._is_termination_msg(last):  # noqa: SLF001
                return "termination_message"
        return reason

    def _remember(self, message: dict[str, Any]) -> None:
        """Make a message part of the history without a reply."""
        message = _as_history(message)
        if is_manager(self.recipient):
            self._remember_in_group(message)
        elif message.pop("_role", None) == "assistant":
            self.recipient.send(message, self.initiator, request_reply=False, silent=True)
        else:
            self.initiator.send(message, self.recipient, request_reply=False, silent=True)

    def _remember_in_group(self, message: dict[str, Any]) -> None:
        manager = self.recipient
        group = manager.groupchat
        spoken_by_model = message.pop("_role", None) == "assistant"
        named = group.agent_by_name(message["name"]) if message.get("name") else None
        speaker = named or (next(iter(self._speakers()), self.initiator) if spoken_by_model else self.initiator)
        message.setdefault("name", speaker.name)
        message |= {"role": "assistant" if spoken_by_model else message.get("role", "user")}
        message["content"] = message.get("content") or ""
        group.append(message, speaker)
        for agent in group.agents:
            if agent is speaker:
                agent.send(message, manager, request_reply=False, silent=True)
            else:
                manager.send(message, agent, request_reply=False, silent=True)

    def _speakers(self) -> list[Any]:
        return [agent for agent in self.recipient.groupchat.agents if agent is not self.initiator and agent.client]

    def _summariser(self, task: ParallelTask) -> Callable[..., Any] | None:
        if self.summary_method == "last_msg":
            return self._last_answer
        if self.summary_method == "reflection_with_llm":
            return lambda sender, recipient, arguments: _reflect(sender, recipient, arguments, task.name)
        method: Callable[..., Any] | None = self.summary_method
        return method


def lone_chat(agent: Any, max_turns: int | None) -> Chat:
    """A chat of a one-shot user with `agent`; the user executes the agent's tools."""
    user = one_shot_user([agent.name])
    user._function_map.update(agent._function_map)  # noqa: SLF001
    for tool in agent.tools:
        tool.register_for_execution(user)
    return Chat(user, agent, [user, agent], user=user, max_turns=max_turns)


def _reflect(sender: Any, recipient: Any, arguments: Mapping[str, Any], task_name: str) -> str:
    """AG2's reflection, whose errors AG2 itself would turn into an empty summary."""
    if sender.client is None and recipient.client is None:
        raise ConfigurationError(
            f'task "{task_name}": summary_method "reflection_with_llm" needs an llm_config on the agent that is asked, '
            "or on the group's manager"
        )
    summary = sender._reflection_with_llm(  # noqa: SLF001
        arguments.get("summary_prompt") or sender.DEFAULT_SUMMARY_PROMPT,
        recipient.chat_messages_for_summary(sender),
        llm_agent=recipient,
        cache=arguments.get("cache"),
        role=arguments.get("summary_role"),
    )
    if isinstance(summary, Mapping):
        summary = summary.get("content")
    if not summary or not str(summary).strip():
        raise InvalidAnswerError(f'task "{task_name}": the model gave an empty summary of the chat')
    return str(summary)


def _split(prompt: Any, task_name: str) -> tuple[list[dict[str, Any]], Any]:
    if not isinstance(prompt, list):
        return [], prompt
    if not prompt:
        raise ConfigurationError(f'task "{task_name}": its prompt is an empty list; give at least one message')
    return prompt[:-1], prompt[-1]


def _as_history(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of the OpenAI protocol as AG2 keeps it, its own role noted apart."""
    kept = dict(message)
    role = kept.get("role")
    if role == "tool" and "tool_responses" not in kept:
        kept["tool_responses"] = [
            {"tool_call_id": kept.get("tool_call_id"), "role": "tool", "content": kept.get("content")}
        ]
    elif role in {"system", "developer"}:
        kept["override_role"] = role
    return kept | {"_role": role}


def _is_empty(message: Mapping[str, Any]) -> bool:
    return not text_of(message.get("content")).strip() and not calls_tool(message) and not says_terminate(message)

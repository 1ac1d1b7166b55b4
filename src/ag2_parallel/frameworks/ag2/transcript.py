"""Between AG2's events and messages of the OpenAI protocol, which is what transcripts and prompts are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.errors import ConfigurationError

if TYPE_CHECKING:
    from ag2.events import BaseEvent, Input

USER_NAME: Final = "user"

_CUT_SHORT: Final = "This tool call was not completed."


def message_of(event: BaseEvent, agent: str) -> dict[str, Any] | None:
    """The message that an event stands for, or None where it is none.

    Args:
        event: An event of the conversation of `agent`.
        agent: The agent's name.
    """
    from ag2.events import ModelRequest, ModelResponse, ToolResultEvent

    if isinstance(event, ModelRequest):
        return {"role": "user", "name": USER_NAME, "content": _content_of(event.parts)}
    if isinstance(event, ModelResponse):
        said: dict[str, Any] = {"role": "assistant", "name": agent, "content": event.content or ""}
        if event.tool_calls:
            said["tool_calls"] = [_call(call) for call in event.tool_calls.calls]
        return said
    if isinstance(event, ToolResultEvent):
        return answer_to_call(event.parent_id, event.name, _content_of(event.result.parts))
    return None


def answer_to_call(call_id: str, tool: str | None, content: Any) -> dict[str, Any]:
    """The message that answers a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "name": tool or "", "content": content}


def unanswered(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Tool calls of a transcript that no message answers: id and tool."""
    answered = {message.get("tool_call_id") for message in messages if message.get("role") == "tool"}
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    return [(call["id"], call["function"]["name"]) for call in calls if call["id"] not in answered]


def text_of(content: Any) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part)


def _call(call: Any) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def _content_of(parts: Iterable[Any]) -> Any:
    from ag2.events import BinaryInput, DataInput, TextInput, UrlInput

    plain: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextInput):
            plain.append({"type": "text", "text": part.content})
        elif isinstance(part, DataInput):
            plain.append({"type": "text", "text": _as_text(part.data)})
        elif isinstance(part, UrlInput):
            plain.append({"type": f"{part.kind.value}_url", f"{part.kind.value}_url": {"url": part.url}})
        elif isinstance(part, BinaryInput):
            plain.append({"type": part.kind.value, "media_type": str(part.media_type), "bytes": len(part.data)})
        else:
            plain.append({"type": type(part).__name__})
    if all(part["type"] == "text" for part in plain):
        return "\n".join(part["text"] for part in plain)
    return plain


def _as_text(data: Any) -> str:
    if hasattr(data, "model_dump_json"):
        return str(data.model_dump_json())
    try:
        return json.dumps(data, ensure_ascii=False, default=str)
    except ValueError:  # a circle
        return str(data)


class Conversation:
    """A prompt as AG2 takes it.

    Attributes:
        system: System messages of the prompt, which follow the agent's own.
        history: What was said before.
        trigger: What the agent answers.
    """

    def __init__(self, prompt: Any, task_name: str) -> None:
        """Read text, a message, or messages of which the last is answered and the others are history.

        Raises:
            ConfigurationError: If there is no message, or one has a form that AG2 1.x has no event for.
        """
        messages = prompt if isinstance(prompt, list) else [prompt]
        self._task_name = task_name
        if not messages:
            raise ConfigurationError(f'task "{task_name}": its prompt is an empty list; give at least one message')
        self._tools: dict[str, str] = {}
        self.system: list[str] = []
        events = [event for message in messages[:-1] if (event := self._event(message)) is not None]
        self.trigger = self._last(messages[-1])
        self.history = _joined(events, self.trigger)

    def _last(self, message: Any) -> BaseEvent:
        from ag2.events import ModelRequest

        if isinstance(message, Mapping) and message.get("role") == "tool":
            return self._tool_result(message)
        content = message.get("content") if isinstance(message, Mapping) else message
        return ModelRequest(self._inputs(content))

    def _event(self, message: Any) -> BaseEvent | None:
        from ag2.events import ModelMessage, ModelRequest, ModelResponse, ToolCallEvent, ToolCallsEvent

        role = message.get("role", "user") if isinstance(message, Mapping) else "user"
        content = message.get("content") if isinstance(message, Mapping) else message
        if role in {"system", "developer"}:
            self.system.append(text_of(content))
            return None
        if role == "tool":
            return self._tool_result(message)
        if role == "assistant":
            calls = [
                ToolCallEvent(
                    call["function"]["name"], id=call["id"], arguments=call["function"].get("arguments") or "{}"
                )
                for call in message.get("tool_calls") or ()
            ]
            self._tools |= {call.id: call.name for call in calls}
            text = text_of(content)
            return ModelResponse(ModelMessage(text) if text else None, tool_calls=ToolCallsEvent(calls))
        return ModelRequest(self._inputs(content))

    def _tool_result(self, message: Mapping[str, Any]) -> BaseEvent:
        from ag2.events import ToolResult, ToolResultEvent, ToolResultsEvent

        call_id = str(message.get("tool_call_id") or "")
        name = message.get("name") or self._tools.get(call_id)
        result = ToolResult(text_of(message.get("content")))
        return ToolResultsEvent([ToolResultEvent(parent_id=call_id, name=name, result=result)])

    def _inputs(self, content: Any) -> list[Input]:
        from ag2.events import ImageInput, TextInput

        if content is None or isinstance(content, str):
            return [TextInput(content or "")]
        inputs: list[Input] = []
        for part in content if isinstance(content, Sequence) else [content]:
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind == "text":
                inputs.append(TextInput(part["text"]))
            elif kind == "image_url":
                address = part["image_url"]
                inputs.append(ImageInput(address["url"] if isinstance(address, Mapping) else address))
            else:
                raise ConfigurationError(
                    f'task "{self._task_name}": its prompt has a part of type {kind!r}, which cannot be given to an '
                    'agent of AG2 1.x in a message; use "text" and "image_url", or a run function that calls agent.ask'
                )
        return inputs


def _joined(events: list[BaseEvent], trigger: BaseEvent) -> list[BaseEvent]:
    """The events, with the results of each batch of tool calls in one, as AG2 has them.

    A call without a result, of a task that was stopped, gets one that says so: providers refuse it otherwise.
    """
    from ag2.events import ModelResponse, ToolResult, ToolResultEvent, ToolResultsEvent

    results = {each.parent_id: each for event in [*events, trigger] for each in getattr(event, "results", ())}
    last = {each.parent_id for each in getattr(trigger, "results", ())}
    joined: list[BaseEvent] = []
    for event in events:
        if isinstance(event, ToolResultsEvent):
            continue
        joined.append(event)
        calls = event.tool_calls.calls if isinstance(event, ModelResponse) else ()
        batch = [
            results.get(call.id) or ToolResultEvent(parent_id=call.id, name=call.name, result=ToolResult(_CUT_SHORT))
            for call in calls
            if call.id not in last
        ]
        if batch:
            joined.append(ToolResultsEvent(batch))
    return joined

"""Reading a chat's messages: their text, and the answer the chat came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_END: Final = "TERMINATE"


def text_of(content: Any) -> str:
    """The text of a message's content, in any of the forms that AG2 takes, without its word for the end."""
    if isinstance(content, str):
        return content.replace(_END, "").rstrip() if _END in content else content
    if isinstance(content, Mapping):
        return text_of(content.get("content", content.get("text")))
    if isinstance(content, Sequence):
        return "\n".join(text_of(part) for part in content if isinstance(part, Mapping) and "text" in part)
    return "" if content is None else str(content)


def calls_tool(message: Any) -> bool:
    """Whether the message asks for a tool to be called."""
    return isinstance(message, Mapping) and bool(message.get("tool_calls") or message.get("function_call"))


def last_answer(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text the chat ended with.

    Where the last message says nothing but that the chat is over, it is what its speaker said before,
    or else what anybody did.

    Args:
        messages: The transcript from the first reply on, without the prompt.
    """
    if not messages:
        return ""
    last = messages[-1]
    text = text_of(last.get("content"))
    if text.strip() or calls_tool(last) or not _only_says_end(last):
        return text
    spoken = [message for message in messages if message.get("role") not in {"tool", "function"}]
    for same_speaker in (True, False):
        for message in reversed(spoken):
            said = text_of(message.get("content"))
            if said.strip() and (not same_speaker or message.get("name") == last.get("name")):
                return said
    return ""


def _only_says_end(message: Mapping[str, Any]) -> bool:
    return _END in str(message.get("content"))

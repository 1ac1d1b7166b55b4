"""Why a chat ended, in the runner's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ag2_parallel.frameworks.classic.stream import Termination

_BEGINNINGS: Final = (
    ("Termination message condition", "termination_message"),
    ("Maximum number of consecutive auto-replies", "auto_reply_limit"),
    ("Maximum turns", "max_turns"),
    ("Maximum rounds", "max_turns"),
    ("No next speaker", "no_next_speaker"),
    ("User requested", "human_exit"),
)
"""How AG2's reasons begin."""

_NO_REPLY: Final = "No reply generated"


def stop_reason(terminations: Sequence[Termination], *, user: str | None, last_message: Any) -> str:
    """Why the chat ended.

    Args:
        terminations: AG2's words since the chat was last begun, in order.
        user: Name of our one-shot user, whose rule is that an answer ends the chat.
        last_message: The last message of the transcript, or None.
    """
    found = next((each for each in reversed(terminations) if each.reason != _NO_REPLY), None)
    reason = "answered"
    if found is not None:
        reason = next((name for beginning, name in _BEGINNINGS if found.reason.startswith(beginning)), "answered")
    if reason == "termination_message" and found is not None and found.sender == user:
        reason = "answered"
    if reason == "answered" and says_terminate(last_message):
        return "termination_message"
    return reason


def says_terminate(message: Any) -> bool:
    """Whether a message ends with AG2's word for the end."""
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, str) and content.rstrip().rstrip(".!*").endswith("TERMINATE")

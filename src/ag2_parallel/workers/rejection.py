"""What a task's `accept` says of an answer."""

from __future__ import annotations


class AnswerRejectedError(Exception):
    """Raised where a task's `accept` refused the answer."""

    kind = "rejected"


def refuse_rejected(verdict: object) -> None:
    """Raise `AnswerRejectedError` for a text, which is the reason, and for what is false; None accepts."""
    if isinstance(verdict, str) or (verdict is not None and not verdict):
        raise AnswerRejectedError(verdict or f"accept returned {verdict!r}")

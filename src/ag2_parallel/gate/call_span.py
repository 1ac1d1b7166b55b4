"""One model call in its task's trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ag2_parallel.gate.attempt_side import AttemptSide
    from ag2_parallel.gate.meter import CallTally


class CallSpan:
    """Begins when it is made; to be ended once."""

    __slots__ = ("_number", "_speaker", "_tally", "_trace")

    def __init__(self, side: AttemptSide, tally: CallTally) -> None:
        self._trace = side.trace
        self._tally = tally
        self._speaker = side.owner.speaker()
        self._number = side.trace.begin("call", tally.model or "a model")

    def ended(self, status: str) -> None:
        """The call has ended: `status` is the HTTP status or the reason there is none."""
        tally = self._tally
        parts = [self._speaker] if self._speaker else []
        parts.append(f"HTTP {status}" if status.isdigit() else status)
        if tally.prompt or tally.completion:
            parts.append(f"{tally.prompt} + {tally.completion} tokens")
        if tally.retried:
            parts.append(f"tried {tally.retried + 1} times")
        self._trace.end(self._number, ", ".join(parts))

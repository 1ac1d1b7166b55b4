"""What a run wants of the gate; apart, because it is known before the gate is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from ag2_parallel.policies import RateLimit


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What a run wants of the gate.

    Attributes:
        rate_limits: Limits, or "auto": those that providers announce.
        adaptive: Whether concurrency is found from refusals.
        hedge_after: Seconds after which a second copy of a call is sent, or "p95"; None: never.
        run: The run, where another process keeps the limits and must find them.
    """

    rate_limits: tuple[RateLimit, ...] | Literal["auto"] = ()
    adaptive: bool = False
    hedge_after: float | Literal["p95"] | None = None
    run: str = ""


NO_LIMITS: Final = CallLimits()

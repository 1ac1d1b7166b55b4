"""What a call asks of whoever keeps the limits: the turnstile of this process, or that of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from ag2_parallel.gate.estimate import AnswerLengths
    from ag2_parallel.gate.limits import Need
    from ag2_parallel.gate.routes import Asked
    from ag2_parallel.gate.wishes import CallLimits


class Named(Protocol):
    """A limit as far as a reader goes."""

    @property
    def name(self) -> str:
        """What a reader is told."""


class Permit(Protocol):
    """One call before the limits, and past them.

    `state` is `asking` (not known yet), `waiting`, `granted`, `refused` or `gone`.
    """

    @property
    def state(self) -> str:
        """Where it is."""

    @property
    def need(self) -> Need:
        """What it takes."""

    @property
    def since(self) -> float:
        """When it was let go."""

    @property
    def until(self) -> float:
        """For a refused one, when it could have gone at the earliest."""

    @property
    def cause(self) -> Named | None:
        """What it waited for, or was refused for."""


class Course(Protocol):
    """The limits that apply to a call, as far as the call must know."""

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit wants an estimate."""

    @property
    def limited(self) -> bool:
        """Whether anything but the endpoint's pace applies."""

    @property
    def listens(self) -> bool:
        """Whether the headers of answers say something."""


class Limiter(Protocol):
    """Keeps the limits. On the loop only. Permits and courses are its own."""

    lengths: AnswerLengths
    now: Callable[[], float]

    def way(self, request: Asked, limits: CallLimits, group: str | None, priority: int) -> Any:
        """The limits that apply to a call: a `Course`."""

    def ask(self, way: Any, need: Need, latest: float | None) -> Any:
        """Ask for admission, by `latest`: a `Permit`."""

    async def known(self, ticket: Any) -> None:
        """Until a permit is not `asking` any more."""

    async def wait(self, ticket: Any) -> None:
        """Until a permit is granted or refused; a cut gives its place back."""

    def ask_at_once(self, way: Any, need: Need) -> Any:
        """A permit that is granted now, or None."""

    def leave(self, ticket: Any) -> None:
        """A call that was let through is not sent."""

    def done(self, ticket: Any, used: int | None) -> None:
        """A call has ended; it used so many tokens, or nobody knows."""

    def headers_came(self, way: Any, ticket: Any, headers: Mapping[str, str], today: datetime) -> None:
        """The headers of an answer, by their names in lower case."""

    def went_through(self, way: Any, ticket: Any) -> None:
        """A call was not refused."""

    def warning(self, limits: CallLimits) -> str | None:
        """What a run should be told of the system's own limits, once."""

    def throttled(self, way: Any, ticket: Any, hint: float | None, initial: float) -> tuple[float, float | None]:
        """The server asked for fewer calls: the pause in seconds, and the pace it had so far in requests a second.

        `hint` are the seconds it named, `initial` those of the first backoff where it named none.
        """

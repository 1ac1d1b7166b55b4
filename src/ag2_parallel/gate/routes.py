"""From a call to the limits that apply to it; the limits' state is kept as long as the gate."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ag2_parallel.gate.adaptive import Window
from ag2_parallel.gate.admission import Route
from ag2_parallel.gate.announced import Announced
from ag2_parallel.gate.descriptors import DescriptorLimit
from ag2_parallel.gate.limits import Limit, RequestLimit, SlotLimit, TokenLimit
from ag2_parallel.gate.pacing import EndpointPace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel.gate.wishes import CallLimits
    from ag2_parallel.policies import RateLimit

L = TypeVar("L", bound=Limit)

KEY_HEADERS: Final = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})

_ADAPTIVE_GROWTH: Final = 0.5
"""How fast a pace grows where the window, too, keeps calls back."""


class Asked(Protocol):
    """What limits need to know of a request."""

    endpoint: str
    model: str | None
    headers: list[tuple[str, str]]

    def estimated_tokens(self) -> int:
        """A guess at the tokens it sends."""

    def answer_cap(self) -> int | None:
        """The most tokens the answer may have, where that is said."""


@dataclass(eq=False, slots=True)
class Way:
    """The route of some calls, and those of its limits that learn from answers.

    Attributes:
        route: All limits that apply.
        pace: The endpoint's, for the key.
        window: The endpoint's, where concurrency is adaptive.
        announced: What the provider announces, where that is wanted.
        counts_tokens: Whether a limit wants an estimate.
    """

    route: Route
    pace: EndpointPace
    window: Window | None
    announced: Announced | None
    counts_tokens: bool

    @property
    def limited(self) -> bool:
        """Whether anything applies but the pace and the system's own limit."""
        return len(self.route.limits) > 2

    @property
    def listens(self) -> bool:
        """Whether the headers of answers say something."""
        return self.announced is not None


class Routes:
    """Every way there is, and the limits they share.

    Attributes:
        descriptors: The system's limit, which applies to all.
    """

    def __init__(self) -> None:
        self.descriptors = DescriptorLimit()
        self._ways: dict[tuple[object, ...], Way] = {}
        self._shared: dict[tuple[object, ...], Limit] = {}

    def way(self, request: Asked, limits: CallLimits, group: str | None, priority: int) -> Way:
        """The way of a call."""
        key = (limits, request.endpoint, secret_mark(request), request.model, group, priority)
        way = self._ways.get(key)
        if way is None:
            way = self._ways[key] = self._make(request, limits, group, priority)
        return way

    def _make(self, request: Asked, limits: CallLimits, group: str | None, priority: int) -> Way:
        endpoint, place = request.endpoint, (request.endpoint, secret_mark(request))
        pace = self._one(EndpointPace, place, lambda: EndpointPace(f"the pace of {endpoint}"))
        window = announced = None
        if limits.adaptive:
            pace.growth = _ADAPTIVE_GROWTH
            window = self._one(Window, place, lambda: Window(f"adaptive concurrency of {endpoint}"))
        own: list[Limit] = []
        if limits.rate_limits == "auto":
            name = f"limits announced by {endpoint} for {request.model}"
            announced = self._one(Announced, (*place, request.model), lambda: Announced(name))
        else:
            named = dict.fromkeys(limits.rate_limits)  # a limit that is named twice holds once
            applying = [each for each in named if _applies(each, request.model, endpoint, group)]
            own = [part for each in applying for part in self._parts(each)]
        learning = [limit for limit in (pace, window, announced) if limit is not None]
        return Way(
            route=Route((*learning, *own, self.descriptors), priority),
            pace=pace,
            window=window,
            announced=announced,
            counts_tokens=announced is not None or any(isinstance(part, TokenLimit) for part in own),
        )

    def _parts(self, limit: RateLimit) -> list[Limit]:
        per, where = limit.per, limit.where()
        parts: list[Limit] = []
        if (requests := limit.requests) is not None:
            name = f"{requests:g} requests in {per:g} s{where}"
            parts.append(self._one(RequestLimit, limit, lambda: RequestLimit(name, requests / per)))
        if (tokens := limit.tokens) is not None:
            name_of_tokens = f"{tokens:g} tokens in {per:g} s{where}"
            parts.append(self._one(TokenLimit, limit, lambda: TokenLimit(name_of_tokens, tokens / per)))
        if (concurrent := limit.concurrent) is not None:
            parts.append(
                self._one(SlotLimit, limit, lambda: SlotLimit(f"{concurrent} calls at once{where}", concurrent))
            )
        return parts

    def _one(self, kind: type[L], of: object, make: Callable[[], L]) -> L:
        """The one limit of its kind for something."""
        found = self._shared.get((kind, of))
        if found is None:
            found = self._shared[kind, of] = make()
        assert isinstance(found, kind)
        return found


def secret_mark(request: Asked) -> int:
    """Tells one key from another, and nothing more; 0 without a key."""
    for name, value in request.headers:
        if name.lower() in KEY_HEADERS:
            return hash(value)
    return 0


def _applies(limit: RateLimit, model: str | None, endpoint: str, group: str | None) -> bool:
    bare = endpoint.partition("://")[2]
    return (
        fnmatchcase(model or "", limit.model)
        and (fnmatchcase(endpoint, limit.endpoint) or fnmatchcase(bare, limit.endpoint))
        and fnmatchcase(group or "", limit.group)
    )

"""The httpx2 client that async SDKs get: each request is handed to the engine loop and awaited.

Loaded when a coroutine first needs it: httpx2 comes with the SDKs that use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import httpx
import httpx2

from ag2_parallel.gate.async_call import begun
from ag2_parallel.gate.request import ModelRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ag2_parallel.gate.async_call import AnswerBytes
    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.terms import Terms

_DECODED: Final = "gzip, deflate"
"""Encodings that the pool can undo on every installation."""


class AsyncGateClient(httpx2.AsyncClient):
    """An attempt's HTTP client for coroutines, on whichever loop they run.

    It owns no connection, so copies are itself and closing does nothing. With a client of the user's
    behind it, requests are built as that client builds them.
    """

    def __init__(self, attempt: GatedAttempt, terms: Terms, through: httpx2.AsyncClient | None) -> None:
        transport = AsyncGateTransport(attempt, terms)
        self._through = through
        if through is None:
            # Redirects are followed as the SDKs' own default clients do.
            super().__init__(
                transport=transport, trust_env=False, follow_redirects=True, headers={"accept-encoding": _DECODED}
            )
        else:
            # The user's client follows redirects, or not, before its answer comes back here.
            super().__init__(transport=transport, trust_env=False, timeout=through.timeout, base_url=through.base_url)

    def build_request(self, *args: Any, **options: Any) -> httpx2.Request:
        """A request with the client's own headers, cookies and parameters."""
        if self._through is not None:
            return self._through.build_request(*args, **options)
        return super().build_request(*args, **options)

    async def aclose(self) -> None:
        """Nothing to close: the connections are the engine's."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class AsyncGateTransport(httpx2.AsyncBaseTransport):
    """Hands requests to the engine loop and awaits the answers."""

    def __init__(self, attempt: GatedAttempt, terms: Terms) -> None:
        self._attempt = attempt
        self._terms = terms

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request. Raises `TaskStopped` once the attempt has to end, and httpx2 exceptions."""
        await request.aread()
        try:
            head, answer = await begun(self._attempt, ModelRequest.read(request), self._terms)
        except httpx.HTTPError as error:
            raise as_httpx2(error, request) from error
        if head.body is not None:
            return httpx2.Response(head.status, headers=head.headers, content=head.body)
        return httpx2.Response(head.status, headers=head.headers, stream=AsyncAnswerStream(answer, request))


class AsyncAnswerStream(httpx2.AsyncByteStream):
    """The bytes of an answer as they arrive."""

    def __init__(self, answer: AnswerBytes, request: httpx2.Request) -> None:
        """`request` is named in the errors."""
        self._answer = answer
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Await the next bytes, to the end."""
        try:
            async for chunk in self._answer:
                yield chunk
        except httpx.HTTPError as error:
            raise as_httpx2(error, self._request) from error

    async def aclose(self) -> None:
        """Leave the answer; where it is not at its end the connection is closed."""
        self._answer.hang_up()


def as_httpx2(error: httpx.HTTPError, request: httpx2.Request) -> httpx2.HTTPError:
    """What httpx2 raises where httpx raised `error`."""
    for kind in type(error).__mro__:
        same = getattr(httpx2, kind.__name__, None) if kind.__module__.startswith("httpx") else None
        if same is not None:
            made: httpx2.HTTPError = same(str(error))
            made.request = request
            return made
    return httpx2.TransportError(str(error), request=request)

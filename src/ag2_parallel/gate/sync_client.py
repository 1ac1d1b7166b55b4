"""The httpx client that blocking SDKs get: each request is handed to the engine loop and waited for."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import httpx

from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.request import ModelRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.call import Call, Terms

_DECODED: Final = "gzip, deflate"
"""Encodings that the pool can undo on every installation."""


class GateClient(httpx.Client):
    """An attempt's HTTP client. It owns no connection, so copies are itself and closing does nothing.

    With a client of the user's behind it, requests are built as that client builds them.
    """

    def __init__(self, attempt: GatedAttempt, terms: Terms, through: httpx.Client | None) -> None:
        transport = GateTransport(attempt, terms)
        if through is None:
            # Redirects are followed as the SDKs' own default clients do.
            super().__init__(
                transport=transport, trust_env=False, follow_redirects=True, headers={"accept-encoding": _DECODED}
            )
        else:
            # The user's client follows redirects, or not, before its answer comes back here.
            super().__init__(transport=transport, trust_env=False, timeout=through.timeout, base_url=through.base_url)
        self._through = through

    def build_request(self, *args: Any, **options: Any) -> httpx.Request:
        """A request with the client's own headers, cookies and parameters."""
        if self._through is not None:
            return self._through.build_request(*args, **options)
        return super().build_request(*args, **options)

    def close(self) -> None:
        """Nothing to close: the connections are the engine's."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class GateTransport(httpx.BaseTransport):
    """Hands requests to the engine loop and waits for the answers."""

    def __init__(self, attempt: GatedAttempt, terms: Terms) -> None:
        self._attempt = attempt
        self._terms = terms

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request. Raises `TaskStopped` once the attempt has to end, and httpx exceptions."""
        attempt = self._attempt
        attempt.side.check_call()
        call = attempt.call(ModelRequest.read(request), self._terms)
        _post(attempt, call.start)
        try:
            head = call.relay.get()
        except BaseException:
            # Whatever it was, also an interrupt raised in this thread: nobody waits for the call any more.
            _post(attempt, call.hang_up)
            raise
        if head.body is not None:
            return httpx.Response(head.status, headers=head.headers, content=head.body)
        return httpx.Response(head.status, headers=head.headers, stream=AnswerStream(attempt, call))


class AnswerStream(httpx.SyncByteStream):
    """The bytes of an answer as they arrive."""

    def __init__(self, attempt: GatedAttempt, call: Call) -> None:
        self._attempt = attempt
        self._call = call
        self._open = True

    def __iter__(self) -> Iterator[bytes]:
        """Wait for the next bytes, to the end."""
        while (chunk := self._call.relay.get()) is not None:
            yield chunk
        self._open = False

    def close(self) -> None:
        """Leave the answer; where it is not at its end the connection is closed."""
        if self._open:
            self._open = False
            with suppress(TaskStopped):  # with the engine, the connection is gone too
                _post(self._attempt, self._call.hang_up)

    def __del__(self) -> None:
        """A stream that was dropped half read would hold its connection for ever."""
        self.close()


def _post(attempt: GatedAttempt, message: Callable[[], None]) -> None:
    try:
        attempt.shared.post(message)
    except RuntimeError as error:  # the engine has gone
        raise TaskStopped from error

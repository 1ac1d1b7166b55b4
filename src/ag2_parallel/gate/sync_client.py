"""The httpx client that blocking SDKs get: each request is handed to the engine loop and waited for."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Self

import httpx

from ag2_parallel.gate.request import ModelRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.call import Call
    from ag2_parallel.gate.terms import Terms
    from ag2_parallel.gate.wire import Head

_setting_up = RLock()
"""One for all clients: hardly any is ever set up."""

_DECODED: Final = "gzip, deflate"
"""Encodings that the pool can undo on every installation."""


class GateClient(httpx.Client):
    """An attempt's HTTP client. It owns no connection, so copies are itself and closing does nothing.

    With a client of the user's behind it, requests are built as that client builds them. It is set up
    when it is first used: most are only there in case AG2 makes an agent of its own.
    """

    def __init__(self, attempt: GatedAttempt, terms: Terms, through: httpx.Client | None) -> None:  # see `__getattr__`
        self._attempt = attempt
        self._terms = terms
        self._through = through
        self._begun = False

    def __getattr__(self, name: str) -> Any:
        """Whatever httpx keeps in a client: asked for in vain until the client is set up."""
        if name.startswith("__") or not name.startswith("_") or "_begun" not in vars(self):
            raise AttributeError(name)
        with _setting_up:
            if not self._begun:
                self._begun = True
                self._set_up()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(name) from None

    def _set_up(self) -> None:
        through, transport = self._through, GateTransport(self._attempt, self._terms)
        if through is None:
            # Redirects are followed as the SDKs' own default clients do.
            super().__init__(
                transport=transport, trust_env=False, follow_redirects=True, headers={"accept-encoding": _DECODED}
            )
        else:
            # The user's client follows redirects, or not, before its answer comes back here.
            super().__init__(transport=transport, trust_env=False, timeout=through.timeout, base_url=through.base_url)

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
        call, head = begun(self._attempt, ModelRequest.read(request), self._terms)
        if head.body is not None:
            return httpx.Response(head.status, headers=head.headers, content=head.body)
        return httpx.Response(head.status, headers=head.headers, stream=AnswerStream(self._attempt, call))


def begun(attempt: GatedAttempt, request: ModelRequest, terms: Terms) -> tuple[Call, Head]:
    """A call whose answer's head has come; where the head has no body, `Call.relay` has its bytes.

    Raises:
        TaskStopped: Once the attempt has to end.
        httpx.HTTPError: What came in place of an answer.
    """
    attempt.side.owner.check_call()
    call = attempt.call(request, terms)
    try:
        attempt.begin(call.start)
        return call, call.relay.get()
    except BaseException:
        # Whatever it was, also an interrupt raised in this thread: nobody waits for the call any more.
        attempt.post(call.hang_up)
        raise


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
            self._attempt.post(self._call.hang_up)

    def __del__(self) -> None:
        """A stream that was dropped half read would hold its connection for ever."""
        self.close()

"""One call's record: found on the attempt's tape and handed over again, or made of the answer that comes.

::

    find ─► a record ─────────────────────────► replayed: the worker gets the recorded answer
       └──► None ─► the call goes live ─► kept: written down, and only then the worker gets its end

Everything but the digest is made on the engine loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.gate.digest import Inquiry, digest_of, foreign_content, request_content
from ag2_parallel.gate.masking import masked_soon
from ag2_parallel.gate.sse import EventStream, parsed_object
from ag2_parallel.gate.wire import Head
from ag2_parallel.provider_errors import was_filtered
from ag2_parallel.records import CallRecord, DistantTape

if TYPE_CHECKING:
    from ag2_parallel.gate.attempt_gate import GatedAttempt
    from ag2_parallel.gate.request import ModelRequest
    from ag2_parallel.gate.wire import HeaderList
    from ag2_parallel.records import CallTape
    from ag2_parallel.usage import Usage

_ERROR: Final = 400
_TELLING: Final = frozenset({"content-type", "x-request-id", "request-id"})
"""Headers that are about the answer itself; others may hold cookies and keys."""


class Recorder:
    """What one call has to do with its attempt's tape."""

    def __init__(
        self, attempt: GatedAttempt, content: Any, model: str | None, endpoint: str, asked: Inquiry | None
    ) -> None:
        assert attempt.side.tape is not None
        self._tape: CallTape = attempt.side.tape
        self._redactor = attempt.side.redactor
        self._spawn = attempt.shared.spawn
        self._digest = digest_of(content)
        self._attempt = attempt
        self._asked = asked
        self._model = model
        self._endpoint = endpoint
        self._passed: list[bytes] = []
        if isinstance(self._tape, DistantTape):
            self._tape.fetch(self._digest)

    @classmethod
    def of(cls, attempt: GatedAttempt, request: ModelRequest) -> Recorder | None:
        """The recorder of a request; None for what is not recorded. In the worker's thread: long requests take a while."""
        if attempt.side.tape is None or not request.chat:
            return None
        return cls(attempt, request_content(request), request.model, request.endpoint, request.asked)

    @classmethod
    def of_foreign(cls, attempt: GatedAttempt, model: str | None, endpoint: str, asked: Any) -> Recorder | None:
        """The same of a call that another client sends."""
        if attempt.side.tape is None:
            return None
        content, cassette = foreign_content(model, endpoint, asked), attempt.side.cassette
        return cls(attempt, content, model, endpoint, None if cassette is None else cassette.asked(content))

    def found(self) -> CallRecord | None:
        """The record of an earlier life, used with this; None: the call goes live."""
        record = self._tape.find(self._digest)
        side = self._attempt.side
        if record is not None and side.cassette is not None and self._asked is not None:
            replayed = self._attempt.replayed
            place = replayed[self._asked.digest] = replayed.get(self._asked.digest, 0) + 1
            side.cassette.replayed(self._asked, record, side, place)
        return record

    def passed(self, chunk: bytes) -> None:
        """The worker gets these bytes of a stream."""
        self._passed.append(chunk)

    async def kept(self, head: Head, last: bytes, usage: Usage, duration: float) -> None:
        """Write the answer down; returns when it is safe.

        Args:
            head: The answer; where it has no body, it is the stream that passed.
            last: The stream's last bytes, which have not passed yet.
            usage: What the call used.
            duration: Seconds from its start.
        """
        body = b"".join([*self._passed, last]) if head.body is None else head.body
        masked = await masked_soon(body, self._redactor, self._spawn)
        if masked != body and head.status < _ERROR:
            return  # a secret is not kept, and an agent that went on from another text would go another way: asked again
        record = CallRecord(
            digest=self._digest,
            status=head.status,
            headers=telling(head.headers),
            body=masked,
            streamed=head.body is None,
            model=self._model,
            endpoint=self._endpoint,
            usage=usage,
            duration=duration,
        )
        self._passed = []
        safe: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tape.keep(record, lambda: None if safe.done() else safe.set_result(None))
        await safe


def telling(headers: HeaderList) -> tuple[tuple[str, str], ...]:
    """The headers that are kept."""
    return tuple((name, value) for name, value in headers if name.lower() in _TELLING)


def recorded_parts(record: CallRecord) -> list[Any]:
    """What a relay hands over for a record: its head, and its bytes where they come as a stream."""
    if not record.streamed:
        return [Head(record.status, [*record.headers], record.body)]
    return [Head(record.status, [*record.headers], None), record.body]


def emptied_by_filter(record: CallRecord) -> bool:
    """Whether the provider's content filter left nothing of a recorded answer."""
    if b"content_filter" not in record.body:
        return False
    if not record.streamed:
        return was_filtered(parsed_object(record.body))
    events = EventStream(strip_usage=False)
    events.feed(record.body)
    events.finish()
    return events.filtered

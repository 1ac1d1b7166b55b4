"""The direct door: an SDK client's stand-in that sends chats itself, at a fraction of the SDK's cost.

AG2's `OpenAIClient` keeps its own ways with messages, tools, schemas, answers and events; what it asks its
SDK client for comes here::

    OpenAIClient.__call__ ─► chat.completions.create ─┬─ known parameters ─► JSON ─► gate ─► ChatCompletion, or a stream
                                                      └─ anything else ─► the SDK, through the HTTP door

Nothing of the SDK is written anew. Addresses, headers and timeouts are those of a request that the SDK
made, a stream is read by the SDK's own `AsyncStream`, and an answer that is no plain success is given to
the SDK to judge, as if it had sent the request.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.frameworks.ag2.request_forms import Replay, RequestForms
from ag2_parallel.frameworks.request_keys import CONTROLS

if TYPE_CHECKING:
    import httpx2

    from ag2_parallel.ports import AttemptGate

_OK: Final = 200

_FORMS: Final = RequestForms()
"""The forms of this process: they depend on configurations alone."""


class DirectClient:
    """Stands where AG2's `OpenAIClient` has its SDK client; what it does not do itself the SDK client does."""

    def __init__(self, sdk: Any, gate: AttemptGate, price: tuple[float, float] | None) -> None:
        """`sdk` goes through the HTTP door of `gate`."""
        self._sdk = sdk
        self.chat = _Chat(sdk, gate, price)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_sdk":  # also where it is being copied and has nothing yet
            raise AttributeError(name)
        return getattr(self._sdk, name)


class _Chat:
    """The `chat` of an SDK client."""

    def __init__(self, sdk: Any, gate: AttemptGate, price: tuple[float, float] | None) -> None:
        self._sdk = sdk
        self.completions = Completions(sdk, gate, price)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_sdk":
            raise AttributeError(name)
        return getattr(self._sdk.chat, name)


class Completions:
    """The `chat.completions` of an SDK client, for one model client of one attempt."""

    def __init__(self, sdk: Any, gate: AttemptGate, price: tuple[float, float] | None) -> None:
        """See `DirectClient`."""
        self._sdk = sdk
        self._gate = gate
        self._price = price

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._sdk.chat.completions, name)

    async def create(self, **params: Any) -> Any:
        """What `chat.completions.create` of the SDK returns and raises."""
        fields = _fields(params)
        body = None if fields is None else _json(fields)
        form = None if fields is None or body is None else await _FORMS.like(self._sdk, fields["model"])
        if fields is None or body is None or form is None:
            return await self._sdk.chat.completions.create(**params)
        come = await self._sent(form, body, fields)
        made = None if isinstance(come, Exception) else self._taken(come, streamed=bool(fields.get("stream")))
        if made is not None:
            return made
        # Not closed: it has no connection, and a stream's answer is read after this.
        replay = Replay(come, self._sdk._client)  # noqa: SLF001 - the HTTP client that it was given
        return await self._sdk.with_options(http_client=replay, max_retries=0).chat.completions.create(**params)

    async def _sent(self, form: httpx2.Request, body: bytes, fields: dict[str, Any]) -> httpx2.Response | Exception:
        """The answer, or what came in its place: raised by the SDK, it has no trace of a second try."""
        send = self._gate.async_chat_sender(form, price=self._price)
        streamed = fields.get("stream") is True
        takes_usage = streamed and "stream_options" not in fields
        try:
            answer: httpx2.Response = await send(body, fields["model"], streamed=streamed, takes_usage=takes_usage)
        except Exception as error:
            return error
        return answer

    def _taken(self, answer: httpx2.Response, *, streamed: bool) -> Any:
        """A plain answer as the SDK reads it; None for every other."""
        if answer.status_code != _OK:
            return None
        return self._stream(answer) if streamed else _completion(answer)

    def _stream(self, answer: httpx2.Response) -> Any:
        from openai import AsyncStream
        from openai.types.chat import ChatCompletionChunk

        if answer.is_closed:  # no stream, though one was asked for
            return None
        return AsyncStream(cast_to=ChatCompletionChunk, response=answer, client=self._sdk)


def _fields(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of the request's body; None for what is no plain chat."""
    from openai import NotGiven, Omit

    absent = {NotGiven, Omit}
    given = {name: value for name, value in params.items() if type(value) not in absent}
    if not given.keys() <= _known_names() or not isinstance(given.get("model"), str) or "messages" not in given:
        return None
    if any(given.get(name) is not None for name in CONTROLS):
        return None
    extra = given.pop("extra_body", None)
    if isinstance(extra, Mapping) and "stream" not in extra:  # which would change how the answer is read
        given |= extra
    elif extra is not None:
        return None
    return given if isinstance(given["model"], str) else None


@cache
def _known_names() -> frozenset[str]:
    from openai.resources.chat.completions import AsyncCompletions

    return frozenset(inspect.signature(AsyncCompletions.create).parameters) - {"self"}


def _json(fields: Mapping[str, Any]) -> bytes | None:
    """The body as the SDK writes it; None for values that only the SDK can write, or refuse."""
    try:
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError):
        return None


def _completion(answer: httpx2.Response) -> Any:
    """A plain answer as the SDK reads it; None for every other."""
    from openai.types.chat import ChatCompletion
    from pydantic import ValidationError

    if not answer.headers.get("content-type", "").split(";")[0].endswith("json"):
        return None
    try:
        completion = ChatCompletion.model_validate_json(answer.content, strict=True)
    except ValidationError:  # the SDK takes answers that are not quite what the protocol says
        return None
    completion._request_id = answer.headers.get("x-request-id")  # noqa: SLF001 - the SDK does so
    return completion

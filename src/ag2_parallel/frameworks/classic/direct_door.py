"""The direct door: an SDK client's stand-in that sends plain chats itself, at a third of the SDK's cost.

AG2's `OpenAIClient` keeps its own ways with parameters, models and errors; what it asks its SDK client
for comes here::

    OpenAIClient.create ─► chat.completions.create ─┬─ a chat of known parameters ─► JSON ─► gate ─► ChatCompletion
                                                    └─ anything else ─► the SDK, through the HTTP door

Nothing of the SDK is written anew. Addresses, headers and timeouts are those of a request that the SDK
made, and an answer that is no plain success is given to the SDK to judge, as if it had sent the request.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ag2_parallel.frameworks.classic.request_forms import Replay, RequestForms
from ag2_parallel.frameworks.request_keys import CONTROLS, plain

if TYPE_CHECKING:
    import httpx

    from ag2_parallel.frameworks.classic.model_configs import Route
    from ag2_parallel.ports import AttemptGate, ChatAnswer, SendChat

_OK: Final = 200


class DirectClient:
    """Stands where one of AG2's model clients has its SDK client; what it does not do itself the SDK client does."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    @property
    def chat(self) -> _Chat:
        """What AG2 asks for its `completions`."""
        return _Chat(self._completions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_completions":  # also where it is being copied and has nothing yet
            raise AttributeError(name)
        return getattr(self._completions.sdk, name)


class _Chat:
    """The `chat` of an SDK client."""

    def __init__(self, completions: Completions) -> None:
        self.completions = completions

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "completions":
            raise AttributeError(name)
        return getattr(self.completions.sdk.chat, name)


class Completions:
    """The `chat.completions` of an SDK client, for one entry of one attempt."""

    def __init__(
        self, sdk: Any, gate: AttemptGate, http: httpx.Client, forms: RequestForms, *, route: Route, last: bool
    ) -> None:
        """Made in no time; what is costly comes with the first call.

        Args:
            sdk: The SDK client that is stood in for, left as it is.
            gate: Sends what goes directly.
            http: The gate's client, for everything else.
            forms: Requests of the SDK to make others like.
            route: The user's price.
            last: Whether no other entry of a fallback list comes after this one.
        """
        self._given = sdk
        self._gate = gate
        self._http = http
        self._forms = forms
        self._route = route
        self._last = last
        self._routed: Any = None
        self._senders: dict[Any, SendChat | None] = {}

    @property
    def sdk(self) -> Any:
        """The SDK client, going through the HTTP door."""
        if self._routed is None:
            self._routed = self._given.with_options(http_client=self._http, max_retries=0)
        return self._routed

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.sdk.chat.completions, name)

    def create(self, **params: Any) -> Any:
        """What `chat.completions.create` of the SDK returns and raises."""
        fields = _fields(params)
        send = None if fields is None else self._sender(params)
        body = None if send is None else _json(fields)
        if send is None or fields is None or body is None:
            return self.sdk.chat.completions.create(**params)
        answer, error = _sent(send, body, fields.get("model"))
        completion = None if answer is None else _completion(answer)
        if completion is not None:
            return completion
        with Replay(answer or error, self._http) as replay:
            return self._given.with_options(http_client=replay, max_retries=0).chat.completions.create(**params)

    def _sender(self, params: Mapping[str, Any]) -> SendChat | None:
        """What sends requests with the model and the controls of `params`; None where the SDK has to."""
        controls = {name: params[name] for name in CONTROLS if name in params}
        key = (params.get("model"), plain(controls)) if controls else params.get("model")
        if key not in self._senders:
            form = self._forms.like(self._given, self._http, params.get("model"), controls)
            self._senders[key] = (
                None if form is None else self._gate.chat_sender(form, last_entry=self._last, price=self._route.price)
            )
        return self._senders[key]


def _fields(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of the request's body; None for what is no plain chat."""
    if not params.keys() <= _known_names() or not isinstance(params.get("model"), str) or "messages" not in params:
        return None
    fields = {name: value for name, value in params.items() if name not in CONTROLS and name != "extra_body"}
    extra = params.get("extra_body")
    if isinstance(extra, Mapping):
        fields |= extra
    elif extra is not None:
        return None
    return None if fields.get("stream") else fields


@cache
def _known_names() -> frozenset[str]:
    from openai.resources.chat.completions import Completions as SdkCompletions

    return frozenset(inspect.signature(SdkCompletions.create).parameters) - {"self"}


def _json(fields: Mapping[str, Any] | None) -> bytes | None:
    """The body as the SDK writes it; None for values that only the SDK can write, or refuse."""
    try:
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError):
        return None


def _sent(send: SendChat, body: bytes, model: Any) -> tuple[ChatAnswer | None, Exception | None]:
    """The answer, or what came in its place: raised by the SDK, it has no trace of a second try."""
    try:
        return send(body, model if isinstance(model, str) else None), None
    except Exception as error:
        return None, error


def _completion(answer: ChatAnswer) -> Any:
    """A plain answer as the SDK reads it; None for every other."""
    from openai.types.chat import ChatCompletion
    from pydantic import ValidationError

    headers = {name.lower(): value for name, value in answer.headers}
    if answer.status != _OK or not headers.get("content-type", "").split(";")[0].endswith("json"):
        return None
    try:
        completion = ChatCompletion.model_validate_json(answer.body, strict=True)
    except ValidationError:  # the SDK takes answers that are not quite what the protocol says
        return None
    completion._request_id = headers.get("x-request-id")  # noqa: SLF001 - the SDK does so
    return completion

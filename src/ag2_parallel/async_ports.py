"""What coroutines may ask of an attempt's gate: the twins of the blocking methods of `ports.AttemptGate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from ag2_parallel.results import TaskError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ForeignRecord(Generic[T]):
    """How a call of another provider's client is recorded.

    Attributes:
        asked: What it asks: plain data, what is none is named by its class.
        dump: An answer as bytes; None where it cannot be brought back from bytes.
        load: An answer from its bytes.
    """

    asked: Any
    dump: Callable[[T], bytes | None]
    load: Callable[[bytes], T]


class SendChatSoon(Protocol):
    """Sends chats for a coroutine."""

    async def __call__(
        self, body: bytes, model: str | None, *, streamed: bool = False, takes_usage: bool = False
    ) -> Any:
        """Send a body for the model named; the answer, an `httpx2.Response`, whole unless a stream was asked for.

        Args:
            body: The request's body.
            model: The model that it asks.
            streamed: Whether it asks for a stream.
            takes_usage: Whether asking for the usage of the stream is up to the gate.

        Raises:
            TaskStopped: Once the attempt has to end.
            httpx2.HTTPError: What came in place of an answer.
        """


class AsyncAttemptGate(Protocol):
    """One attempt's access to model servers, for coroutines on whichever event loop of the attempt.

    Cancelling what is awaited cuts the call at once; a cut of the attempt raises `TaskStopped` where it is awaited.
    """

    def async_http_client(
        self, *, last_entry: bool = True, price: tuple[float, float] | None = None, through: Any = None
    ) -> Any:
        """An `httpx2.AsyncClient` whose requests go through the gate; copying it, deeply too, gives the same one.

        Args:
            last_entry: Whether no other entry of a fallback list comes after this one.
            price: US dollars for 1,000 prompt tokens and for 1,000 completion tokens.
            through: The user's own `httpx2.AsyncClient`, to send with in place of the gate's pool. All that
                such clients send is sent on one loop of the process, so that any number of tasks may share one.
        """

    def async_chat_sender(
        self, like: Any, *, last_entry: bool = True, price: tuple[float, float] | None = None
    ) -> SendChatSoon:
        """What sends chats with no HTTP client in between.

        Args:
            like: An `httpx2.Request` whose address, headers and timeouts theirs have.
            last_entry: See `async_http_client`.
            price: See `async_http_client`.
        """

    async def foreign_call_soon(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        model: str | None,
        endpoint: str,
        usage: Callable[[T], Mapping[str, Any] | None],
        failed: Callable[[Exception], TaskError],
        price: tuple[float, float] | None = None,
        estimate: int = 0,
        record: ForeignRecord[T] | None = None,
    ) -> T:
        """Make a call that a client of another provider sends, on the caller's loop: counted and tried again.

        Args:
            work: Makes the call once.
            model: The model asked.
            endpoint: The server's address, or the provider's name.
            usage: The usage block of what `work` returned, None where there is none.
            failed: Reads what `work` raised.
            price: US dollars for 1,000 prompt tokens and for 1,000 completion tokens.
            estimate: A guess at the tokens it sends, for a call that brings no usage block.
            record: How its answer is written down and read again; None: it is not.
        """

"""A model server without a model: real HTTP, scripted answers, faults on demand, and a ledger of what it saw."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self

from ag2_parallel.testing.faults import Fault
from ag2_parallel.testing.ledger import Ledger
from ag2_parallel.testing.replies import Answer, ReplyFunction, Script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

HOST = "127.0.0.1"
KEY = "sk-test-0000000000000000"


class ModelServer:
    """A local HTTP server that speaks the OpenAI chat protocol and answers as it is told.

    It serves `POST /v1/chat/completions` (JSON and server-sent events), `GET /v1/models`, `GET /ledger` and
    `POST /ledger/reset` on its own daemon thread, and carries a thousand requests at once.

        with ModelServer("hello", latency=0.1) as server:
            config = server.llm_config()

    Args:
        reply: What to answer. None: `echo: ` and the text of the last user message. A str, `Reply`, `Fault` or dict
            (raw body of a completion): always that. A sequence of these: in the order in which requests arrive;
            after its end the last one repeats. A function of the `ChatRequest`, sync or async: what it returns.
            A sync one is called on a thread of its own, so it may block, and for several requests at once.
        latency: Seconds before an answer is sent. Faults come at once.
        port: Where to listen on 127.0.0.1; 0: any free port.
        models: Names that `GET /v1/models` lists. Requests may ask for any other.
        include_usage: Whether answers carry a usage block (in a stream only if the client asked for it).
        accepts_stream_options: Whether `stream_options` is taken; if not, a request that has it gets status 400.

    Attributes:
        ledger: What the server saw.
    """

    def __init__(
        self,
        reply: Answer | Sequence[Answer] | ReplyFunction | None = None,
        *,
        latency: float = 0.0,
        port: int = 0,
        models: Sequence[str] = ("scripted",),
        include_usage: bool = True,
        accepts_stream_options: bool = True,
    ) -> None:
        self.reply = reply
        self.latency = latency
        self.models = tuple(models)
        if not self.models:
            raise ValueError("a ModelServer has at least one model; models is empty")
        self.include_usage = include_usage
        self.accepts_stream_options = accepts_stream_options
        self.ledger = Ledger()
        self._wanted_port = port
        self._port: int | None = None
        self._faults: deque[Fault] = deque()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def reply(self) -> Answer | Sequence[Answer] | ReplyFunction | None:
        """What the server answers; may be set while it runs, and a sequence then starts at its beginning."""
        return self._reply

    @reply.setter
    def reply(self, reply: Answer | Sequence[Answer] | ReplyFunction | None) -> None:
        self.script = Script(reply)
        self._reply = reply

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._port is None:
            raise RuntimeError("the ModelServer does not run; use it in a `with` block or call start()")
        return self._port

    @property
    def url(self) -> str:
        """The server's root, such as `http://127.0.0.1:8000`."""
        return f"http://{HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """What goes into a model configuration's `base_url`."""
        return f"{self.url}/v1"

    def llm_config(self, **entry: Any) -> dict[str, Any]:
        """A fresh AG2 model configuration for this server; `entry` adds to its one entry or overrides it."""
        return llm_config(self.base_url, self.models[0], entry)

    def fail_next(self, fault: Fault, times: int = 1) -> None:
        """Answer the next `times` requests with `fault`; the script goes on after them. Safe from any thread."""
        if not isinstance(fault, Fault):
            raise TypeError(f"fail_next takes a Fault, such as Fault.status(503), not {type(fault).__name__}")
        self._faults.extend([fault] * times)

    def take_fault(self) -> Fault | None:
        """The fault that is due, if one is; for the server."""
        try:
            return self._faults.popleft()
        except IndexError:
            return None

    def start(self) -> Self:
        """Start listening; returns when requests are served. Does nothing if it runs."""
        if self._thread is None:
            started: Future[int] = Future()
            thread = threading.Thread(
                target=lambda: asyncio.run(self._serve(started)), name="model-server", daemon=True
            )
            thread.start()
            try:
                self._port = started.result()
            except BaseException:
                thread.join()
                raise
            self._thread = thread
        return self

    def close(self) -> None:
        """End every request and connection and free the port. Does nothing if it does not run."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._stop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        thread.join()
        self._port = self._loop = self._stop = None

    async def _serve(self, started: Future[int]) -> None:
        try:
            from ag2_parallel.testing.http_service import HttpService

            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            service = HttpService(self)
            listener = await service.listen(HOST, self._wanted_port)
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(listener.sockets[0].getsockname()[1])
        await self._stop.wait()
        listener.close()
        await service.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"at {self.base_url}" if self._port is not None else "not running"
        return f"ModelServer({where}, {self.ledger.count} requests)"


def llm_config(base_url: str, model: str, entry: dict[str, Any]) -> dict[str, Any]:
    """An AG2 model configuration with one entry, `entry` merged into it."""
    return {"config_list": [{"model": model, "api_key": KEY, "base_url": base_url} | entry]}


if __name__ == "__main__":
    from ag2_parallel.testing.serve import serve

    sys.exit(serve(ModelServer))

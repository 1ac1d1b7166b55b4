"""A gate on a loop in a thread of its own, as an engine has it."""

import asyncio
import contextlib
import gc
import json
import random
import socket
import threading

import openai

from ag2_parallel.core.clock import SystemClock
from ag2_parallel.errors import TaskStopped
from ag2_parallel.gate.gate import Gate
from ag2_parallel.policies import RetryPolicy
from ag2_parallel.redaction import Redactor

FAST = RetryPolicy(5, initial=0.001, maximum=0.002)
HELLO = [{"role": "user", "content": "hello"}]


def spawn(work):
    threading.Thread(target=work, daemon=True).start()


class GateHarness:
    def __init__(self, clock=None):
        self.loop = asyncio.new_event_loop()
        self.complaints = []
        self.loop.set_exception_handler(lambda _loop, context: self.complaints.append(context))
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.gate = Gate(self.loop, self.loop.call_soon_threadsafe, spawn, clock or SystemClock(), random.Random(7))

    def attempt(self, retry=FAST, *, remaining=lambda: None, check_call=lambda: None, observed=True, **options):
        notes = Notes(remaining, check_call, observed=observed)
        gate = self.gate.open_attempt(retry=retry, redactor=Redactor(), owner=notes, **options)
        gate.notes = notes
        return gate

    def on_loop(self, function, *args):
        async def run():
            return function(*args)

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def cut(self, attempt, reason="deadline"):
        self.on_loop(attempt.cut, reason)

    def tasks(self):
        return self.on_loop(lambda: [task for task in asyncio.all_tasks() if task is not asyncio.current_task()])

    def close_gate(self):
        asyncio.run_coroutine_threadsafe(self.gate.close(), self.loop).result(10)

    def close(self):
        self.close_gate()
        left = self.tasks()
        assert self.loop._default_executor is None, "its threads are joined at exit, and may never come back"
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        gc.collect()  # what was not awaited or closed complains now
        assert left == []
        assert self.complaints == []


class Notes:
    """An attempt that notes what the gate tells it."""

    def __init__(self, remaining=lambda: None, check_call=lambda: None, *, observed=False):
        self.patience, self.check_call, self.observed = remaining, check_call, observed
        self.events = []
        self.waits = []
        self.signs = 0
        self.waits_now = threading.Event()
        self.alive_now = threading.Event()

    def sign_of_life(self):
        self.signs += 1
        self.alive_now.set()

    def tell_waiting(self, *, waiting):
        self.waits.append(waiting)
        if waiting:
            self.waits_now.set()

    def emit(self, event, **fields):
        self.events.append(event(run_id="r", **fields))

    def observes_calls(self):
        return self.observed

    def cut_off(self, kind, message):
        """Nothing more is asked of it."""

    def fail(self, error):
        """Its task's result is nobody's concern here."""

    def speaker(self):
        return None

    def named(self, name):
        return [event for event in self.events if event.type == name]


@contextlib.contextmanager
def harness(clock=None):
    made = GateHarness(clock)
    try:
        yield made
    finally:
        made.close()


def client(attempt, server, **options):
    """The real SDK, its own retries off."""
    return openai.OpenAI(
        base_url=server.base_url, api_key="sk-test", max_retries=0, http_client=attempt.http_client(**options)
    )


def ask(attempt, server, *, text="hello", model="scripted", **options):
    messages = [{"role": "user", "content": text}]
    return client(attempt, server).chat.completions.create(model=model, messages=messages, **options)


class InThread:
    """What a call in a worker's thread came to."""

    def __init__(self, function, *args, **options):
        self.value = self.error = None

        def run():
            try:
                self.value = function(*args, **options)
            except (Exception, TaskStopped) as error:
                self.error = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self


class RawServer:
    """Answers each request with given bytes, to say what no proper server says.

    Set `answer` to bytes, or to a function of the request's bytes and number that gives bytes; None: close without
    an answer. Connections stay open unless `close_after` is set.
    """

    def __init__(self):
        self.answer = b""
        self.close_after = False
        self.requests = []
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.base_url = self.url
        spawn(self._accept)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                spawn(lambda connection=connection: self._serve(connection))

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            while request := _read_request(connection):
                self.requests.append(request)
                answer = self.answer(request, len(self.requests)) if callable(self.answer) else self.answer
                if answer is None:
                    return
                connection.sendall(answer)
                if self.close_after:
                    return

    def close(self):
        self._socket.close()


def _read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < int(lengths[0]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http_answer(body, *, status=200, content_type="application/json", headers=()):
    """An answer's bytes."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"Content-Length: {len(payload)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + payload


@contextlib.contextmanager
def raw_server():
    server = RawServer()
    try:
        yield server
    finally:
        server.close()

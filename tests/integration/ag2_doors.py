"""An AG2 1.x configuration governed for one attempt of a real gate, through either door, and what became of its asks."""

import asyncio
import json
import re

from ag2 import Agent
from ag2.config import OpenAIConfig

from ag2_parallel.frameworks.ag2.govern import governed
from ag2_parallel.frameworks.ag2.stream import FastStream
from ag2_parallel.redaction import Redactor
from ag2_parallel.workers.daemon_threads import DaemonThreads
from ag2_parallel.workers.private_loop import PrivateLoop, finish

DOORS = ("direct", "http")
KEY = "sk-" + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL"

_ONE_OFF = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-f]+|\"created_at\": [\d.]+"
)
"""What differs between two runs of the same: identifiers, addresses in memory, times."""


class WatchedGate:
    """An attempt's gate that counts what was sent directly."""

    def __init__(self, attempt):
        self.attempt = attempt
        self.sent = 0

    def async_chat_sender(self, *args, **options):
        send = self.attempt.async_chat_sender(*args, **options)

        async def watched(*what, **how):
            self.sent += 1
            return await send(*what, **how)

        return watched

    def __getattr__(self, name):
        return getattr(self.attempt, name)


class Scope:
    """What governing asks of `ports.AttemptScope`."""

    def __init__(self, attempt):
        self.gate = WatchedGate(attempt)
        self.redactor = Redactor()


def config(base_url, **more):
    """A configuration."""
    return OpenAIConfig(**({"model": "gpt-4o-mini", "api_key": KEY, "base_url": base_url} | more))


def on_a_loop(coroutine):
    """The coroutine's result, on a private loop, which is closed afterwards."""
    loop = PrivateLoop(DaemonThreads("ag2-parallel test"))
    try:
        return loop.run_until_complete(coroutine)
    finally:
        finish(loop, within=1.0)


class Asked:
    """An ask of a fresh agent, and what came of it.

    Attributes:
        body: The reply's text.
        error: What was raised.
        events: What was published on its stream.
        sent: Calls that took the direct door.
    """

    def __init__(self, attempt, door, given, *messages, price=None, tools=(), **options):
        scope = Scope(attempt)
        self.body = self.error = None
        self.events = []
        made = governed(given, scope, price=price, direct=door == "direct")
        agent = Agent("agent", "be brief", config=made, tools=tools)

        async def ask():
            stream = FastStream()

            async def note(event):
                self.events.append(event)

            stream.subscribe(note)
            reply = await agent.ask(*(messages or ("hello",)), stream=stream, **options)
            self.body = reply.body
            self.used = (await reply.usage()).total

        try:
            on_a_loop(ask())
        except Exception as error:
            self.error = error
        self.sent = scope.gate.sent

    @property
    def told(self):
        """Everything in plain values, the same for two asks that went the same way."""
        events = [(type(event).__name__, event.to_dict()) for event in self.events]
        found = {"body": self.body, "events": events, "error": self.error and described(self.error)}
        return _ONE_OFF.sub("*", json.dumps(found, default=repr, sort_keys=True))


def described(error):
    """An error and what it came from."""
    found = {"type": type(error).__name__, "text": str(error)}
    for name in ("status_code", "code", "param", "body", "request_id"):
        found[name] = getattr(error, name, None)
    if (response := getattr(error, "response", None)) is not None:
        found["response"] = (
            response.status_code,
            sorted(item for item in response.headers.items() if item[0] != "date"),
            response.text,
        )
    if isinstance(error, Exception) and (request := vars(error).get("request")) is not None:
        found["request"] = (request.method, str(request.url), json.loads(request.content))
    found["cause"] = described(error.__cause__) if isinstance(error.__cause__, Exception) else None
    return found


async def until(condition):
    """Await until a condition of another thread holds."""
    while not condition():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.005)


def request_parts(request):
    """A raw request as its line, its headers and its parsed body."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    named = sorted((name.lower(), value) for name, _, value in (header.partition(": ") for header in headers))
    return line, named, json.loads(body)

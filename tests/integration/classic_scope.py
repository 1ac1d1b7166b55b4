"""An attempt's scope for tests of the Classic framework: real requests, and a record of what went through it."""

import asyncio
import contextlib
import contextvars
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from ag2_parallel.errors import SharedAgentError, TaskStopped
from ag2_parallel.frameworks.classic.framework import ClassicFramework
from ag2_parallel.ports import Answer, ChatAnswer, Draft, Work
from ag2_parallel.redaction import Redactor
from ag2_parallel.spans import Trace
from ag2_parallel.tasks import ParallelTask, TaskContext
from ag2_parallel.usage import Usage


class CountingClient(httpx.Client):
    """A gate's client that sends by itself and counts."""

    def __init__(self, gate, sender, **timeouts):
        super().__init__(transport=CountingTransport(gate, sender), **timeouts)

    def __deepcopy__(self, memo):
        return self


class CountingTransport(httpx.BaseTransport):
    def __init__(self, gate, sender):
        self.gate = gate
        self.sender = sender

    def handle_request(self, request):
        self.gate.check_call()
        self.gate.requests += 1
        headers = {name: value for name, value in request.headers.items() if name != "connection"}
        response = self.sender.send(httpx.Request(request.method, request.url, headers=headers, content=request.read()))
        return httpx.Response(response.status_code, headers=response.headers, content=response.content, request=request)


class Gate:
    """`ports.AttemptGate` without a pool."""

    def __init__(self, check_call=lambda: None):
        self.check_call = check_call
        self.requests = 0
        self.entries: list[dict[str, Any]] = []
        self.foreign: list[dict[str, Any]] = []
        self.direct: list[str | None] = []
        self._own = httpx.Client(timeout=20)

    def http_client(self, *, last_entry=True, price=None, through=None):
        self.entries.append({"last_entry": last_entry, "price": price, "through": through})
        return CountingClient(self, through or self._own)

    filtered = False

    def foreign_call(self, work, *, usage, failed, **terms):
        self.check_call()
        self.foreign.append(terms)
        return work()

    def chat_sender(self, like, *, last_entry=True, price=None):
        client = CountingClient(self, self._own)

        def send(body, model):
            self.direct.append(model)
            skipped = {"content-length", "host", "connection"}
            headers = {name: value for name, value in like.headers.items() if name not in skipped}
            response = client.send(httpx.Request("POST", like.url, headers=headers, content=body))
            return ChatAnswer(response.status_code, response.headers.multi_items(), response.content)

        return send

    def usage(self):
        return Usage()

    def waited(self):
        return 0.0

    def cut(self, reason):
        """Nothing is in flight between two calls."""

    def close(self):
        self._own.close()


class RefusedError(Exception):
    """What a scope without a hook raises."""

    kind = "human_input"


@dataclass
class Scope:
    """`ports.AttemptScope` with its state open to tests."""

    observed: bool = True
    hook: Any = None
    stop_at: Any = None
    """A predicate of the scope: the stop signal is raised at the first checkpoint where it is true."""
    draft: Draft = field(default_factory=Draft)
    redactor: Redactor = field(default_factory=Redactor)
    trace: Trace = field(default_factory=lambda: Trace(time.monotonic))
    emitted: list[tuple[type, dict[str, Any]]] = field(default_factory=list)
    claimed: list[Any] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    taken: list[Any] = field(default_factory=list)
    signs: int = 0
    waits: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self):
        self.gate = Gate(self.check_call)

    def check(self):
        if self.stopped.is_set() or (self.stop_at is not None and self.stop_at(self)):
            raise TaskStopped("deadline")

    check_call = check

    def sign_of_life(self):
        self.signs += 1

    @contextlib.contextmanager
    def waiting(self):
        self.waits += 1
        yield

    def run_coroutine(self, coroutine):
        context = contextvars.copy_context()
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            task = loop.create_task(coroutine, context=context)

            def watch():
                if self.stopped.is_set():
                    task.cancel()
                else:
                    loop.call_later(0.01, watch)

            watch()
            try:
                return loop.run_until_complete(task)
            except asyncio.CancelledError:
                if self.stopped.is_set():
                    raise TaskStopped("deadline") from None
                raise

    def ask(self, request):
        if self.hook is None:
            raise RefusedError(f'agent "{request.agent}" asked {request.prompt!r}; set human_input_mode="NEVER"')
        return self.hook(request)

    def emit(self, event, **fields):
        self.emitted.append((event, fields))

    def claim(self, made):
        if any(made is each for each in self.taken):
            raise SharedAgentError("another task has it")
        self.claimed.append(made)

    def hold(self, thing, what):
        self.held.append(what)

    def names(self):
        """Names of the agent events, in order."""
        return [fields["name"] for _, fields in self.emitted if "name" in fields]


class Services:
    """What stands behind the context."""

    def __init__(self, scope, framework, folder):
        self._scope = scope
        self._framework = framework
        self._folder = folder

    def directory(self):
        return self._folder

    def remaining(self):
        return None

    def check(self):
        self._scope.check()

    def report(self, message):
        """Nobody listens."""

    def llm_config(self, config):
        return self._framework.routed(config, self._scope)


@dataclass
class Ran:
    """What came of a task."""

    answer: Answer | None
    error: BaseException | None
    scope: Scope

    @property
    def history(self):
        return self.scope.draft.chat_history

    @property
    def texts(self):
        return [message["content"] for message in self.history]


def attempt(task, agent=None, *, tmp_path, framework=None, fresh=True, scope=None):
    """Run one attempt on this thread; what it raises is in `error`."""
    framework = framework or ClassicFramework()
    scope = scope or Scope()
    context = dict(task.context or {})
    ctx = TaskContext(
        task,
        index=0,
        attempt=1,
        context=context,
        upstream={},
        resources={},
        services=Services(scope, framework, tmp_path / "run" / "task-0"),
    )
    ctx.prompt = task.prompt
    made = agent(ctx) if fresh and callable(agent) and not hasattr(agent, "name") else agent
    answer = error = None
    try:
        answer = framework.run(Work(task=task, agent=made, fresh=fresh, ctx=ctx, scope=scope))
    except BaseException as raised:
        error = raised
    finally:
        scope.gate.close()
    return Ran(answer, error, scope)


def run(task, agent=None, **options):
    """Run one attempt that has to succeed."""
    ran = attempt(task, agent, **options)
    if ran.error is not None:
        raise ran.error
    return ran


def task(prompt="hello", **fields):
    return ParallelTask("t", prompt, **fields)

"""What the parts ask of each other: small Protocols and the values that cross them.

`core` drives a `Backend`; the backend runs attempts; an attempt's code is run by a `Framework`, which asks its
`AttemptScope` for checkpoints and its `AttemptGate` for model calls.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ag2_parallel.async_ports import AsyncAttemptGate, ForeignRecord
from ag2_parallel.spans import Spans

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime

    import httpx

    from ag2_parallel.events import Event
    from ag2_parallel.redaction import Redactor
    from ag2_parallel.results import ParallelTaskResult, TaskError
    from ag2_parallel.spans import Trace
    from ag2_parallel.tasks import HumanInputRequest, ParallelTask, TaskContext
    from ag2_parallel.usage import Usage

T = TypeVar("T")

Judge = Callable[["TaskError"], "TaskError"]
"""From an error to the same error with `retryable` judged by the user's `RetryPolicy.on`."""


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""


class Observer(Protocol):
    """Told of events, one at a time, in order: of all, or of those at least that its attribute `wants` lists."""

    def __call__(self, event: Event, /) -> object:
        """Take one event."""


@dataclass(slots=True, kw_only=True)
class Answer:
    """What an attempt's code came to."""

    output: Any = None
    summary: str | None = None
    stop_reason: str = "completed"


@dataclass(slots=True, kw_only=True)
class Draft:
    """What an attempt has so far: filled as it goes, so that a stopped task keeps what it had.

    Written by the attempt's thread and read by the engine at any moment. Each assignment and each
    `append` is atomic; nothing is ever removed.
    """

    chat_history: list[dict[str, Any]] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    context: Mapping[str, Any] = field(default_factory=dict)
    last_speaker: str | None = None
    summary: str | None = None
    agent: str | None = None
    """The agent at work, for an error's `agent`."""
    tool: str | None = None
    """The tool at work, for an error's `tool`."""


class ChatAnswer(NamedTuple):
    """A whole answer of a model server: its status, its headers, its decoded body."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


SendChat = Callable[[bytes, "str | None"], ChatAnswer]
"""Sends a body for the model named and waits for the answer; raises `TaskStopped` and httpx exceptions."""


class AttemptGate(AsyncAttemptGate, Protocol):
    """One attempt's access to model servers."""

    def http_client(
        self, *, last_entry: bool = True, price: tuple[float, float] | None = None, through: httpx.Client | None = None
    ) -> httpx.Client:
        """A client whose requests go through the gate; copying it, deeply too, gives the same one.

        Args:
            last_entry: Whether no other entry of a fallback list comes after this one; others give up
                after two tries.
            price: US dollars for 1,000 prompt tokens and for 1,000 completion tokens.
            through: The user's own client, to send with in place of the gate's pool.
        """

    def foreign_call(
        self,
        work: Callable[[], T],
        *,
        model: str | None,
        endpoint: str,
        usage: Callable[[T], Mapping[str, Any] | None],
        failed: Callable[[Exception], TaskError],
        price: tuple[float, float] | None = None,
        estimate: int = 0,
        record: ForeignRecord[T] | None = None,
    ) -> T:
        """Make a call that a client of another provider sends, on the calling thread: counted and tried again.

        It cannot be cut in flight: a stop is raised when `work` comes back.

        Args:
            work: Makes the call once; blocking.
            model: The model asked.
            endpoint: The server's address, or the provider's name.
            usage: The usage block of what `work` returned, None where there is none.
            failed: Reads what `work` raised.
            price: US dollars for 1,000 prompt tokens and for 1,000 completion tokens.
            estimate: A guess at the tokens it sends, for a call that brings no usage block.
            record: How its answer is written down and read again; None: it is not.
        """

    @property
    def filtered(self) -> bool:
        """Whether the provider's content filter left nothing of the last answer."""

    def chat_sender(
        self, like: httpx.Request, *, last_entry: bool = True, price: tuple[float, float] | None = None
    ) -> SendChat:
        """What sends chats that are not streamed, with no HTTP client in between.

        Args:
            like: A request whose address, headers and timeouts theirs have.
            last_entry: See `http_client`.
            price: See `http_client`.
        """

    def usage(self) -> Usage:
        """What its calls used so far; safe from any thread."""

    def waited(self) -> float:
        """Seconds in which at least one call waited for a limit or for its next try; safe from any thread."""

    def cut(self, reason: str) -> None:
        """End every call in flight and refuse new ones; called on the engine loop."""


class AttemptScope(Protocol):
    """What an attempt's code may ask of the machinery around it, from the attempt's own thread."""

    draft: Draft
    redactor: Redactor
    trace: Trace

    @property
    def gate(self) -> AttemptGate:
        """Where the attempt's model calls pass."""

    def check(self) -> None:
        """A checkpoint of the task's own: raise `TaskStopped` if it has to end."""

    def check_call(self) -> None:
        """The checkpoint before a model call: raises whenever the task is stopped, also while it unwinds."""

    def sign_of_life(self) -> None:
        """Something happened: the idle limit starts anew. Raises nothing."""

    def waiting(self) -> AbstractContextManager[None]:
        """While inside, the idle limit does not run: a person or a limit is waited for."""

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end on the attempt's private loop, in the attempt's context variables.

        A stop cancels it. Works inside a running loop too: there it runs on a thread of its own.
        """

    async def run_blocking(self, function: Callable[[], T]) -> T:
        """Call a blocking function for a coroutine of the attempt, on a thread of its own and in its context variables.

        A stop ends the wait at once and is raised in the function as in the attempt's own code; the attempt does not
        end before the function has come back.
        """

    def ask(self, request: HumanInputRequest) -> str:
        """Put a question to the user's hook, one at a time in the whole run; refuse where there is none."""

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Tell the observers; run, task, index and attempt are filled in. Cheap where nobody listens."""

    @property
    def observed(self) -> bool:
        """Whether anybody listens to `AgentEvent`s, so that their costly fields need not be made."""

    def claim(self, made: object) -> None:
        """Take an object that a factory returned for this attempt; `SharedAgentError` if another task has it."""

    def hold(self, thing: object, what: str) -> None:
        """Note an object (`what` in words) that running tasks should not share; the second holder is warned of once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a framework is asked to run.

    Attributes:
        task: The task. Where `agent` is None its `agent_config` says what to build.
        agent: A template, to be copied and left untouched, or what a factory made for this attempt alone.
        fresh: Whether a factory made `agent` for this attempt, so that it may be used as it is.
        ctx: The attempt's context; `ctx.prompt` is rendered.
        scope: The attempt's machinery.
        at_the_end: Takes what is done, last things first, once nothing of the task's own looks at the agents any more.
    """

    task: ParallelTask
    agent: Any
    fresh: bool
    ctx: TaskContext
    scope: AttemptScope
    at_the_end: list[Callable[[], None]] = field(default_factory=list)


class Framework(Protocol):
    """A kind of agent and how to run it."""

    name: str

    def recognises(self, agent: object) -> bool:
        """Whether `agent` is one of its kinds, factories left aside. Never imports AG2."""

    def problems(self, task: ParallelTask, agent: object) -> list[str]:
        """What stands against running `agent` (or, with None, the task's `agent_config`), before anything starts."""

    def models(self, task: ParallelTask, agent: object) -> list[tuple[str, str, bool]]:
        """The models that configurations name: name, endpoint or "", and whether a price stands there. Imports no AG2."""

    def warm_up(self) -> None:
        """Pay the one-off costs: import the AG2 line and what its first chat loads. Blocking; once a process."""

    def run(self, work: Work) -> Answer:
        """Run the prompt of `work.ctx` to its end on the calling thread."""

    def routed(self, config: Any, scope: AttemptScope) -> Any:
        """A copy of a model configuration whose calls go through the attempt's gate."""


class FrameworkChoice(Protocol):
    """The frameworks that an attempt may need."""

    @property
    def functions(self) -> Framework:
        """What runs functions and objects with `run_task`."""

    def building(self, task: ParallelTask) -> Framework:
        """What runs a task that has no agent: it is built from the task's `agent_config`, or for the runner's model."""

    def routing(self, config: object) -> Framework:
        """What routes a model configuration through the gate."""

    def recognising(self, agent: object) -> Framework | None:
        """The framework of an agent, or None if no loaded one knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOrder:
    """All that a backend needs to run one attempt."""

    index: int
    attempt: int
    task: ParallelTask
    upstream: Mapping[str, ParallelTaskResult]
    deadline: float | None
    """Monotonic time of the nearest of the task's, the attempt's and the run's limits."""
    judge: Judge | None = None
    """Puts the verdict of a user's retry function into an error."""
    watched: bool = False
    """Whether signs of life are waited for: the task has an idle limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """What a backend says when an attempt's code came to its end."""

    answer: Answer | None = None
    error: TaskError | None = None
    ended: str = "returned"
    """`returned`, `unwound` (the stop signal reached a checkpoint), `cut` (a model call in flight or running
    code was interrupted) or `killed` (its process ended)."""
    lost: bool = False
    """Whether it went down with its process and is to run again, whatever the task's retry policy says."""


class BackendListener(Protocol):
    """Where a backend reports to; every method may be called from any thread."""

    def attempt_ended(self, index: int, attempt: int, outcome: AttemptOutcome) -> None:
        """The attempt's code is at its end, whatever became of the task meanwhile."""

    def attempt_cut_off(self, index: int, attempt: int, error: TaskError) -> None:
        """The attempt was refused a model call for good: it has to end, and its task fails with `error`."""

    def attempt_alive(self, index: int, attempt: int) -> None:
        """A sign of life."""

    def attempt_waiting(self, index: int, attempt: int, *, waiting: bool, on_person: bool) -> None:
        """The attempt began or ceased to wait for a limit, or for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What an attempt had at one moment, for the result."""

    draft: Draft
    usage: Usage
    waited: float
    directory: str | None = None
    spans: Spans = field(default_factory=Spans)


class Backend(Protocol):
    """Where attempts run. Called on the engine loop only; never blocks."""

    def start(self, order: AttemptOrder) -> bool:
        """Start an attempt; False if no worker could be had for it now."""

    def stop(self, index: int, attempt: int, reason: str) -> None:
        """Raise the stop signal at the attempt's next checkpoint and cut its model calls."""

    def insist(self, index: int, attempt: int) -> None:
        """The grace is used up: every checkpoint raises, and the signal is raised in running Python code once."""

    def snapshot(self, index: int, attempt: int) -> Snapshot:
        """What the attempt has now."""

    def forget(self, index: int, attempt: int) -> None:
        """The attempt's result is made; drop what was kept for it."""


HumanInput = Callable[["HumanInputRequest"], str]
"""The user's hook for questions to a person."""

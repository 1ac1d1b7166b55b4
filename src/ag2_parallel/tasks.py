"""A unit of work, and what its code is given while it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ag2_parallel.redaction import Redactor, masked_config

if TYPE_CHECKING:
    from pathlib import Path

    from ag2_parallel.policies import RetryPolicy
    from ag2_parallel.results import ParallelTaskResult

Message: TypeAlias = Mapping[str, Any]
"""A chat message as AG2 and the OpenAI protocol have it: `role`, `content` and more."""


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with Jinja2 places in it, filled when the task starts.

    The names in it are `upstream` (results of the dependencies by name), `context` and `metadata`.
    Rendering is sandboxed and strict: a name that is not there fails the task.

    Attributes:
        text: The template's text.
    """

    text: str


Prompt: TypeAlias = "str | Template | Message | Sequence[Message] | Callable[[TaskContext], Any]"


@dataclass(frozen=True, slots=True)
class ParallelTask:
    """One unit of work of a run. A dict with the same keys does as well.

    Exactly one of `agent_config`, `agent` and `run` is set; none only where the runner has an
    `llm_config`, and then a plain assistant answers the prompt. Nothing of a task is ever mutated.
    Fields are checked when a run starts, all problems of all tasks at once.

    Attributes:
        name: 1 to 200 printable characters, unique in the run also after NFC, case folding and stripping.
        prompt: What the agent is asked: text, a `Template`, a message, a list of messages, or a
            function of the `TaskContext` that returns one of these.
        agent_config: Keyword arguments of AG2 Classic's `ConversableAgent`; `"type"` may name another class.
        agent: An agent, team or Pattern used as a template (copied for each attempt), a factory
            `() -> it` or `(ctx) -> it`, or `"module:attribute"`.
        run: A function `(ctx) -> value`, sync or async, that does the work, or `"module:attribute"`.
        max_turns: As in `initiate_chat`; for teams the number of rounds. None: the agents' own rules.
        summary_method: As in `initiate_chat`; default `"last_msg"`.
        summary_args: As in `initiate_chat`.
        context: Values for this task alone, deep-copied for each attempt: `ctx.context` and the
            agents' context variables.
        depends_on: Names of tasks that must have succeeded before this one starts.
        timeout: Seconds from the task's start, attempts and backoff included; None: the runner's.
        attempt_timeout: Seconds for one attempt; None: the runner's.
        idle_timeout: Seconds without an event or a byte from a model; None: the runner's.
        retry: Attempts of the whole task, as a number or a `RetryPolicy`; None: the runner's.
        priority: Higher starts first; ties start in input order.
        group: A label whose tasks are counted together.
        output_type: A type or pydantic model the answer is validated into.
        output_retries: How often the agent is asked again for an answer that does not fit.
        accept: Looks at the result; False or a text is a failure with that reason, True accepts.
        metadata: Carried through to the result untouched.
    """

    name: str
    prompt: Prompt = ""
    agent_config: Mapping[str, Any] | None = None
    agent: Any = field(default=None, kw_only=True)
    run: Callable[..., Any] | str | None = field(default=None, kw_only=True)
    max_turns: int | None = field(default=None, kw_only=True)
    summary_method: str | Callable[..., Any] | None = field(default="last_msg", kw_only=True)
    summary_args: Mapping[str, Any] | None = field(default=None, kw_only=True)
    context: Mapping[str, Any] | None = field(default=None, kw_only=True)
    depends_on: Sequence[str] = field(default=(), kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    attempt_timeout: float | None = field(default=None, kw_only=True)
    idle_timeout: float | None = field(default=None, kw_only=True)
    retry: int | RetryPolicy | None = field(default=None, kw_only=True)
    priority: int = field(default=0, kw_only=True)
    group: str | None = field(default=None, kw_only=True)
    output_type: Any = field(default=None, kw_only=True)
    output_retries: int = field(default=0, kw_only=True)
    accept: Callable[[ParallelTaskResult], bool | str] | None = field(default=None, kw_only=True)
    metadata: Any = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        """Only what was set, keys masked and long text cut."""
        own = Redactor()
        learn_task(own, self)  # a key may stand in the prompt or an address too
        shown = [f"name={own.text(repr(self.name))}"]
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if value is not item.default and value != ():
                shown.append(f"{item.name}={_short(own.text(repr(masked_config(value))))}")
        return f"ParallelTask({', '.join(shown)})"


def learn_task(redactor: Redactor, task: ParallelTask) -> None:
    """Tell a redactor of the secrets in a task's fields."""
    redactor.learn(task.agent_config)
    redactor.learn(task.summary_args)
    redactor.learn_data(task.context)
    redactor.learn_data(task.metadata)


@dataclass(frozen=True, slots=True)
class RefusedTask:
    """Stands in a source of tasks for one that could not be made: it becomes a failed result of kind `configuration`.

    Attributes:
        name: What the result is called, made unique where it is taken.
        problem: Why there is no task.
    """

    name: str
    problem: str


TASK_FIELDS = tuple(item.name for item in fields(ParallelTask) if item.init)
"""The names a task, or a dict that stands for one, may have."""


@dataclass(frozen=True, slots=True)
class HumanInputRequest:
    """A question that an agent asks a person.

    Attributes:
        task: The task's name.
        agent: The name of the agent that asks, where known.
        prompt: The question.
        password: Whether the answer should not be shown while it is typed.
    """

    task: str
    agent: str | None
    prompt: str
    password: bool = False


class ContextServices(Protocol):
    """What stands behind a `TaskContext` while its attempt runs."""

    def remaining(self) -> float | None:
        """Seconds left, or None without a limit."""

    def check(self) -> None:
        """Raise the stop signal if the task has to end."""

    def report(self, message: str) -> None:
        """Tell the observers."""

    def llm_config(self, config: Any) -> Any:
        """A copy of a model configuration that goes through the gate."""

    def directory(self) -> Path:
        """Where the task's own folder is, or will be."""


class TaskContext:
    """What a task's own code is given: a factory, a `run` function, a prompt function.

    Attributes:
        name: The task's name.
        index: Its place in the input, from 0.
        prompt: The prompt, rendered; None while a prompt function or a template is being evaluated.
        context: This attempt's own copy of the task's `context`.
        metadata: The task's `metadata`, untouched.
        group: The task's `group`.
        attempt: The number of this attempt, from 1.
        upstream: Results of the dependencies, by name.
        resources: What the runner's `resources` factories made, by name.
        directory_made: Whether `directory` was used.
    """

    def __init__(
        self,
        task: ParallelTask,
        *,
        index: int,
        attempt: int,
        context: dict[str, Any],
        upstream: Mapping[str, ParallelTaskResult],
        resources: Mapping[str, Any],
        services: ContextServices,
    ) -> None:
        """Made by the machinery, one for each attempt."""
        self.name = task.name
        self.index = index
        self.prompt: Any = None
        self.context = context
        self.metadata = task.metadata
        self.group = task.group
        self.attempt = attempt
        self.upstream = upstream
        self.resources = resources
        self._directory: Path | None = None
        self._services = services

    @property
    def directory(self) -> Path:
        """The task's own folder, made on first use for its owner alone and never deleted by us."""
        if self._directory is None:
            own = self._services.directory()
            for folder in (own.parent, own):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory = own
        return self._directory

    @property
    def directory_made(self) -> bool:
        """Whether the folder was asked for."""
        return self._directory is not None

    def llm_config(self, config: Any) -> Any:
        """A copy of an AG2 model configuration whose calls go through the runner's gate.

        An agent built with it costs no TLS set-up of its own, and its calls are cut, retried and
        counted with the task. The configuration passed in is left as it is.
        """
        return self._services.llm_config(config)

    def unique_name(self, base: str) -> str:
        """`base` made unique for this task and attempt, fit as an AG2 agent name."""
        safe = "".join(c if c.isalnum() or c in "_-" else "_" for c in base)
        return f"{safe}_{self.index}_{self.attempt}"

    def remaining(self) -> float | None:
        """Seconds until the task's or the attempt's limit, whichever is nearer; None without one."""
        return self._services.remaining()

    def check(self) -> None:
        """Raise `TaskStopped` if the task has to end; call it now and then in long loops."""
        self._services.check()

    def report(self, message: str) -> None:
        """Tell the observers and the log what the task is doing; counts as a sign of life."""
        self._services.report(message)

    def __repr__(self) -> str:
        """Which task and attempt this is."""
        return f"TaskContext(name={self.name!r}, index={self.index}, attempt={self.attempt})"


def safe_file_name(name: str, index: int) -> str:
    """A task's name as part of a path: letters, digits, `._-`, at most 80 of them, and its index."""
    kept = "".join(c if (c.isalnum() and c.isascii()) or c in "._-" else "_" for c in name)[:80]
    return f"{kept.lstrip('.') or 'task'}-{index}".replace(os.sep, "_")


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"

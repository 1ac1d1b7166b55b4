"""One attempt of a task, on the thread it owns: from the order to the outcome."""

from __future__ import annotations

import contextvars
import copy
import inspect
import logging
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ag2_parallel.errors import ConfigurationError, UnsupportedAgentError
from ag2_parallel.events import AgentEvent, ModelCallFinished, RunWarning, TaskReported
from ag2_parallel.once import EFFECTS
from ag2_parallel.ports import Answer, AttemptOutcome, Draft, Snapshot, T, Work
from ag2_parallel.results import ParallelTaskResult, TaskError, TaskStatus
from ag2_parallel.spans import Trace
from ag2_parallel.tasks import TaskContext, safe_file_name
from ag2_parallel.validation import unrunnable
from ag2_parallel.workers.coroutines import Coroutines
from ag2_parallel.workers.effects import AttemptEffects
from ag2_parallel.workers.factories import takes_argument
from ag2_parallel.workers.locating import locate
from ag2_parallel.workers.prompts import rendered
from ag2_parallel.workers.rejection import refuse_rejected
from ag2_parallel.workers.stop_signal import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from ag2_parallel.events import Event
    from ag2_parallel.ports import AttemptGate, AttemptOrder, BackendListener, Framework
    from ag2_parallel.tasks import HumanInputRequest
    from ag2_parallel.workers.run_services import RunServices

_log = logging.getLogger("ag2_parallel.tasks")

CURRENT: contextvars.ContextVar[Attempt | None] = contextvars.ContextVar("ag2_parallel_attempt", default=None)
"""The attempt whose code is running, so that a run inside a task is stopped with it and its prints are its own."""


class Attempt:
    """One attempt: the scope that its code runs in, and the services behind its `TaskContext`."""

    def __init__(self, order: AttemptOrder, services: RunServices, listener: BackendListener) -> None:
        """Nothing runs yet."""
        self.order = order
        self._services = services
        self._listener = listener
        self.signal = StopSignal()
        self.draft = Draft(console=services.console(order.task.name))
        self.redactor = services.redactor
        self.trace = Trace(services.clock.monotonic)
        self._coroutines = Coroutines(services.threads, self.signal, order.task.name)
        self._ctx: TaskContext | None = None
        self._tape = services.tape(order)
        self._gate: AttemptGate | None = services.open_gate(order.index, self._gate_parts)

    @property
    def gate(self) -> AttemptGate:
        """See `ports.AttemptScope`; what a task's code left running gets another one once the attempt is over."""
        self._gate = gate = self._gate or self._services.open_gate(self.order.index, self._gate_parts)
        return gate  # not the attribute: `release` may come in between

    def _gate_parts(self) -> dict[str, Any]:
        """What the gate needs of an attempt; asked with its first model call."""
        task = self.order.task
        return {
            "owner": self,
            "group": task.group,
            "priority": task.priority,
            "task": task.name,
            "tape": self._tape,
            "trace": self.trace,
        }

    # ---- running

    def run(self) -> None:
        """Run the attempt on the calling thread and report its outcome."""
        try:
            outcome = self._services.context.copy().run(self._outcome)
        except BaseException as error:  # even words for an error may fail: the outcome is told in any case
            outcome = self._wordless(error)
        self._services.claims.release(self.order.index)
        self._listener.attempt_ended(self.order.index, self.order.attempt, outcome)

    def _wordless(self, error: BaseException) -> AttemptOutcome:
        """The outcome where an exception, or what its task left behind, cannot even be described."""
        kind = type(error).__name__
        message = f'task "{self.order.task.name}" ended with an error that cannot be described ({kind} while trying)'
        ended = "returned" if self.signal.reason is None else "unwound"
        return AttemptOutcome(error=TaskError(type=kind, message=message), ended=ended)

    def _outcome(self) -> AttemptOutcome:
        CURRENT.set(self)
        EFFECTS.set(AttemptEffects(self.order.task.name, self, self.signal, self._services.receipts))
        try:
            with self.signal.user_code():
                answer = self._answer()
        except BaseException as error:
            self._coroutines.close()  # a blocking tool may have to be interrupted yet
            how = "cut" if self.signal.cut_short or getattr(self.gate, "was_cut", False) else "unwound"
            found, judge = self._services.task_error(error, self.redactor, self.draft), self.order.judge
            ended = "returned" if self.signal.reason is None else how
            return AttemptOutcome(error=found if judge is None else judge(found), ended=ended)
        self._coroutines.close()
        return AttemptOutcome(answer=answer)

    def _answer(self) -> Answer:
        task, ctx = self.order.task, self._context()
        agent, fresh = self._agent(ctx)
        ctx.prompt = rendered(task.prompt, ctx)
        work = Work(task=task, agent=agent, fresh=fresh, ctx=ctx, scope=self)
        try:
            answer = self._framework_for(agent).run(work)
            self.draft.context = self.draft.context or ctx.context
            self._accept(answer)
            return answer
        finally:
            while work.at_the_end:
                work.at_the_end.pop()()

    def _context(self) -> TaskContext:
        task = self.order.task
        try:
            context = copy.deepcopy(dict(task.context)) if task.context else {}
        except Exception as error:
            msg = f'task "{task.name}": its context cannot be copied ({error}); put plain data in it, and live objects in resources='
            raise ConfigurationError(msg) from error
        self.draft.context = context
        self._ctx = TaskContext(
            task,
            index=self.order.index,
            attempt=self.order.attempt,
            context=context,
            upstream=self.order.upstream,
            resources=self._services.resources,
            services=self,
        )
        return self._ctx

    def _agent(self, ctx: TaskContext) -> tuple[Any, bool]:
        """What to run, and whether it was made for this attempt alone."""
        task = self.order.task
        if task.run is not None:
            return (locate(task.run) if isinstance(task.run, str) else task.run), False
        agent = locate(task.agent) if isinstance(task.agent, str) else task.agent
        if agent is None or not callable(agent) or self._services.frameworks.recognising(agent) is not None:
            return agent, False
        made = agent(ctx) if takes_argument(agent) else agent()
        if inspect.iscoroutine(made):
            made = self.run_coroutine(made)
        if made is None:
            raise ConfigurationError(f'task "{task.name}": its factory returned None; did it forget "return"?')
        return made, True

    def _framework_for(self, agent: object) -> Framework:
        if self.order.task.run is not None:
            return self._services.frameworks.functions
        if agent is None:
            return self._services.frameworks.building(self.order.task)
        framework = self._services.frameworks.recognising(agent)
        if framework is not None:
            return framework
        raise UnsupportedAgentError(f'task "{self.order.task.name}": {unrunnable(agent)}')

    def _accept(self, answer: Answer) -> None:
        if (accept := self.order.task.accept) is None:
            return
        verdict: Any = accept(self._provisional(answer))
        if inspect.iscoroutine(verdict):
            verdict = self.run_coroutine(verdict)
        refuse_rejected(verdict)

    def _provisional(self, answer: Answer) -> ParallelTaskResult:
        task, draft = self.order.task, self.draft
        return ParallelTaskResult(
            name=task.name,
            index=self.order.index,
            status=TaskStatus.SUCCEEDED,
            output=answer.output,
            summary=answer.summary,
            chat_history=list(draft.chat_history),
            context=draft.context,
            last_speaker=draft.last_speaker,
            stop_reason=answer.stop_reason,
            usage=self.gate.usage(),
            attempts=self.order.attempt,
            metadata=task.metadata,
            group=task.group,
            started_at=None,
            finished_at=datetime.now(UTC),
        )

    # ---- AttemptScope

    def check(self) -> None:
        """See `ports.AttemptScope`."""
        if self.signal.reason is not None:
            with self.signal.own_code():
                self.signal.check()

    def check_call(self) -> None:
        """See `ports.AttemptScope`."""
        if self.signal.reason is not None:
            with self.signal.own_code():
                self.signal.check_call()

    def sign_of_life(self) -> None:
        """See `ports.AttemptScope`."""
        if self.order.watched:
            with self.signal.own_code():
                self._listener.attempt_alive(self.order.index, self.order.attempt)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """See `ports.AttemptScope`."""
        self.tell_waiting(waiting=True, on_person=True)
        span = self.trace.begin("wait", "a person")
        try:
            yield
        finally:
            self.trace.end(span)
            self.tell_waiting(waiting=False, on_person=True)

    def tell_waiting(self, *, waiting: bool, on_person: bool = False) -> None:
        """The attempt begins or ceases to wait for a limit, the next try of a call, or a person."""
        self._listener.attempt_waiting(self.order.index, self.order.attempt, waiting=waiting, on_person=on_person)

    def cut_off(self, kind: str, message: str) -> None:
        """A model call was refused for good: the task fails, and the attempt has its grace to end."""
        self._listener.attempt_cut_off(
            self.order.index,
            self.order.attempt,
            TaskError(
                type="ConfigurationError" if kind == "configuration" else "TaskStopped",
                message=f'task "{self.order.task.name}" was stopped before a model call: {message}',
                kind=kind,
                retryable=False,
                agent=self.draft.agent,
                tool=self.draft.tool,
            ),
        )
        self.signal.set("budget")

    def fail(self, error: Exception) -> None:
        """The task fails with `error`, whatever its code makes of it."""
        told = self._services.task_error(error, self.redactor, self.draft)
        self._listener.attempt_cut_off(self.order.index, self.order.attempt, told)
        self.signal.set("cancelled")

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """See `ports.AttemptScope`."""
        return self._coroutines.run(coroutine)

    async def run_blocking(self, function: Callable[[], T]) -> T:
        """See `ports.AttemptScope`."""
        return await self._coroutines.blocking.run(function)

    def ask(self, request: HumanInputRequest) -> str:
        """See `ports.AttemptScope`."""
        return self._services.questions.ask(request, self, self.signal.on_stop)

    def emit(self, event: type[Event], **fields: Any) -> None:
        """See `ports.AttemptScope`."""
        if self._services.observed(event):
            with self.signal.own_code():
                self._services.emit(
                    event, task=self.order.task.name, index=self.order.index, attempt=self.order.attempt, **fields
                )

    @property
    def observed(self) -> bool:
        """See `ports.AttemptScope`."""
        return self._services.observed(AgentEvent)

    def claim(self, made: object) -> None:
        """See `ports.AttemptScope`."""
        self._services.claims.claim(made, index=self.order.index, task=self.order.task.name)

    def hold(self, thing: object, what: str) -> None:
        """See `ports.AttemptScope`."""
        if self._services.claims.hold(thing, index=self.order.index):
            message = (
                f'task "{self.order.task.name}" and another running task hold the same {what}; '
                "what one of them changes in it the other sees: make it in the factory"
            )
            _log.warning(message)
            self.emit(RunWarning, message=message)

    # ---- ContextServices

    def remaining(self) -> float | None:
        """See `TaskContext.remaining`."""
        if (deadline := self.order.deadline) is None:
            return None
        if not self._services.count_waiting:
            limit = self._services.run_limit
            deadline += self.gate.waited()
            deadline = deadline if limit is None else min(deadline, limit)
        return max(0.0, deadline - self._services.clock.monotonic())

    def observes_calls(self) -> bool:
        """Whether anybody is told of model calls."""
        return self._services.observed(ModelCallFinished)

    def speaker(self) -> str | None:
        """The agent at work, where known."""
        return self.draft.agent

    def patience(self) -> float | None:
        """Seconds that a model call may wait."""
        if self._services.count_waiting:
            return self.remaining()
        limit = self._services.run_limit
        return None if limit is None else max(0.0, limit - self._services.clock.monotonic())

    def report(self, message: str) -> None:
        """See `TaskContext.report`."""
        self.sign_of_life()
        text = self.redactor.text(str(message))
        _log.info("%s", text, extra={"task": self.order.task.name, "attempt": self.order.attempt})
        self.emit(TaskReported, message=text)
        self.check()

    def llm_config(self, config: Any) -> Any:
        """See `TaskContext.llm_config`."""
        with self.signal.own_code() if self.signal.reason is not None else nullcontext():
            return self._services.frameworks.routing(config).routed(config, self)

    def directory(self) -> Path:
        """See `TaskContext.directory`."""
        return self._services.directory / safe_file_name(self.order.task.name, self.order.index)

    # ---- for the backend

    def snapshot(self) -> Snapshot:
        """What the attempt has now; safe from any thread."""
        gate, ctx = self.gate, self._ctx
        directory = str(ctx.directory) if ctx is not None and ctx.directory_made else None
        return Snapshot(
            draft=self.draft, usage=gate.usage(), waited=gate.waited(), directory=directory, spans=self.trace.so_far()
        )

    def release(self) -> None:
        """It is over: part it from what refers back to it, so that all of it is freed now and not by the garbage collector."""
        self._gate = self._ctx = None

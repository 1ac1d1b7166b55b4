"""The attempts of one run in a worker process."""

from __future__ import annotations

import contextvars
import itertools
import logging
import os
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ag2_parallel.backends import wire
from ag2_parallel.backends.crossing import Left, loaded, packed_left
from ag2_parallel.backends.local import LocalBackend
from ag2_parallel.backends.reporting_back import Account, Listener, emitter, plain_error
from ag2_parallel.backends.revived import revived
from ag2_parallel.backends.wire_receipts import WireReceipts
from ag2_parallel.backends.wire_tape import WireTape
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.frameworks.registry import Frameworks
from ag2_parallel.gate.budget import Spending
from ag2_parallel.gate.on_demand import GateOnDemand
from ag2_parallel.gate.remote_spending import RemoteSpending
from ag2_parallel.ports import AttemptOrder, AttemptOutcome
from ag2_parallel.redaction import Redactor
from ag2_parallel.tasks import learn_task
from ag2_parallel.usage import Usage
from ag2_parallel.workers.attempt import CURRENT, Attempt
from ag2_parallel.workers.claims import Claims
from ag2_parallel.workers.console import ConsoleRouter
from ag2_parallel.workers.questions import Questions
from ag2_parallel.workers.resources import Resources
from ag2_parallel.workers.run_services import RunServices

if TYPE_CHECKING:
    from ag2_parallel.backends.link import Link
    from ag2_parallel.backends.plan import RunPlan
    from ag2_parallel.machinery import Machinery
    from ag2_parallel.ports import BackendListener
    from ag2_parallel.results import TaskError
    from ag2_parallel.tasks import HumanInputRequest

_LOOK = 0.05
"""Seconds between two looks at the stop signal while a question is with the parent."""


class ChildRun:
    """A run as a worker process knows it. On the loop, where nothing else is said."""

    def __init__(self, opening: wire.OpenRun, machinery: Machinery, link: Link) -> None:
        """Nothing is opened yet."""
        self._run = opening.run
        self._payload = opening.payload
        self._machinery = machinery
        self._link = link
        self._ready = threading.Event()
        self._broken: TaskError | None = None
        self._services: RunServices
        self._frameworks: Frameworks
        self._resources = Resources(None)
        self._console: ConsoleRouter | None = None
        self._redactor = Redactor(None)
        self._spending: RemoteSpending | None = None
        self._used_up: list[wire.OverBudget] = []
        self._accounts: dict[wire.Key, Account] = {}
        self._latest: dict[int, wire.Key] = {}
        self._stops: dict[wire.Key, str] = {}
        self._starting: set[wire.Key] = set()
        self._tapes: dict[wire.Key, WireTape] = {}
        self._receipts = WireReceipts(self._run, link)
        self._questions: dict[int, _Question] = {}
        self._numbers = itertools.count(1)
        post = machinery.engine.post
        self._listener = Listener(
            self._run,
            link,
            ended=lambda key, outcome: post(partial(self._ended, key, outcome)),
            news=self._tell_news_of,
        )
        self._backend = LocalBackend(
            spawn=machinery.threads.run,
            make_attempt=self._make,
            listener=self._listener,
            loop=machinery.engine.loop,
        )

    # ---- on threads

    def open(self) -> None:
        """Get ready; blocking."""
        try:
            self._open(loaded(self._payload))
        except BaseException as error:  # of the user's: a resource, or a module that is not here
            self._broken = plain_error(task_error(error, self._redactor, None))
            self._link.send(wire.RunBroke(self._run, self._broken))
        self._ready.set()

    def _open(self, plan: RunPlan) -> None:
        logging.getLogger("ag2_parallel").setLevel(plan.log_level)
        self._redactor = Redactor(plan.redact, learnt=lambda new: self._link.send(wire.Learnt(self._run, tuple(new))))
        self._redactor.learn(plan.llm_config)
        self._redactor.learn_environment(os.environ)
        self._redactor.learn({"secret": plan.secrets})
        self._frameworks = Frameworks(plan.llm_config)
        self._console = ConsoleRouter("grouped" if plan.captures else "quiet", self._redactor)
        self._console.open()
        self._resources = Resources(plan.resources, self._redactor.text)
        self._resources.open()
        if plan.budget is not None:
            Spending(plan.budget, on_reached=lambda _why: None, on_refused=lambda _why: None).load_prices()
        self._spending = RemoteSpending(
            limits_cost=plan.budget is not None and plan.budget.limits_cost,
            charge=partial(self._charge, budget=plan.budget is not None),
            refused=lambda: self._link.send(wire.RefusedCall(self._run)),
        )
        self._spending.used_up.update({each.index: each.message for each in self._used_up})
        self._services = self._make_services(plan)

    def _charge(self, index: int, tokens: int, cost: float, *, budget: bool) -> None:
        """A call was counted; the parent should know, also where the process dies in the next moment."""
        if budget:
            self._link.send(wire.Charged(self._run, index, tokens, cost))
        key = self._latest.get(index)
        if key is not None:
            self._tell_news_of(key)

    def _make_services(self, plan: RunPlan) -> RunServices:
        machinery, run, clock = self._machinery, self._run, self._machinery.clock
        of_all = {
            "retry": plan.model_retry,
            "redactor": self._redactor,
            "limits": plan.limits,
            "waited_for": lambda limit, seconds: self._link.send(wire.WaitedFor(run, limit, seconds)),
        }
        return RunServices(
            run_id=run,
            directory=Path(plan.directory) / run,
            context=contextvars.copy_context(),
            frameworks=self._frameworks,
            resources=self._resources.opened,
            questions=Questions(self._ask if plan.asks else None),
            claims=Claims(),
            redactor=self._redactor,
            threads=machinery.threads,
            clock=clock,
            task_error=task_error,
            emit=emitter(run, self._link),
            observed=lambda kind: kind.__name__ in plan.observed,
            console=self._console.sink if self._console is not None else lambda _task: [],
            count_waiting=plan.count_waiting,
            run_limit=None if plan.run_remaining is None else clock.monotonic() + plan.run_remaining,
            receipts=self._receipts.of,
            tape=lambda order: self._tapes.get(wire.Key(run, order.index, order.attempt)),
            open_gate=lambda index, own: GateOnDemand(
                machinery.gate,
                of_all,
                own,
                None if self._spending is None else self._spending.of(index),  # it tells of calls, too
            ),
        )

    def _begin(self, message: wire.Start) -> None:
        """Unpack a task and get ready for it; then it starts on the loop."""
        try:
            self._ready.wait()
            if self._broken is not None:
                self._refuse(message.key, self._broken)
                return
            task, upstream = loaded(message.payload)
            learn_task(self._redactor, task)
            self._frameworks.warm_up_for(task)
        except BaseException as error:
            self._refuse(message.key, plain_error(task_error(error, self._redactor, None)))
            return
        key, clock = message.key, self._machinery.clock
        order = AttemptOrder(
            index=key.index,
            attempt=key.attempt,
            task=task,
            upstream=upstream,
            deadline=None if message.remaining is None else clock.monotonic() + message.remaining,
            watched=message.watched,
        )
        self._machinery.engine.post(partial(self._launch, key, order))

    def _refuse(self, key: wire.Key, error: TaskError | None, ended: str = "returned") -> None:
        self._link.send(_nothing_left(key, error, ended))
        self._machinery.engine.post(partial(self._over, key))

    def close(self) -> None:
        """Close what is open and say so; blocking."""
        self._ready.wait()
        self._resources.close()
        if self._console is not None:
            self._console.close()
        self._link.send(wire.RunClosed(self._run))

    # ---- on the loop

    def told(self, message: Any) -> None:
        """The parent said something about this run."""
        match message:
            case wire.Start():
                self._starting.add(message.key)
                if message.recorded:
                    self._tapes[message.key] = WireTape(message.key, self._link, _check)
                self._machinery.threads.run(partial(self._begin, message))
            case wire.Stop():
                self._stop(message.key, message.reason)
            case wire.Insist():
                self._backend.insist(message.key.index, message.key.attempt)
            case wire.OverBudget():
                self._used_up.append(message)
                if self._spending is not None:
                    self._spending.used_up[message.index] = message.message
            case wire.Found() | wire.Kept() if message.key in self._tapes:
                self._tapes[message.key].told(message)
            case wire.EffectTold():
                self._receipts.told(message)
            case wire.Answered() if message.number in self._questions:
                self._questions.pop(message.number).take(message)
            case _:  # the answer to what nobody waits for any more
                pass

    def _launch(self, key: wire.Key, order: AttemptOrder) -> None:
        if key in self._stops:
            self._refuse(key, None, "unwound")
            return
        self._starting.discard(key)
        if not self._backend.start(order):
            error = RuntimeError("no thread could be started in the worker process")
            self._refuse(key, plain_error(task_error(error, self._redactor, None)))

    def _make(self, order: AttemptOrder, listener: BackendListener) -> Attempt:
        attempt = Attempt(order, self._services, listener)
        key = wire.Key(self._run, order.index, order.attempt)
        self._accounts[key] = Account(key, order.task.name, attempt.snapshot, self._redactor.text)
        self._latest[order.index] = key
        return attempt

    def _stop(self, key: wire.Key, reason: str) -> None:
        if key in self._accounts:
            self._backend.stop(key.index, key.attempt, reason)
        elif key in self._starting:
            self._stops[key] = reason

    def stop_all(self) -> None:
        """The run is over, whatever still runs."""
        for key in list(self._accounts):
            self._stop(key, "cancelled")

    def _ended(self, key: wire.Key, outcome: AttemptOutcome) -> None:
        account = self._accounts.get(key)
        self._over(key)
        if account is not None:
            self._link.send(partial(self._last_words, key, account, outcome))

    def _last_words(self, key: wire.Key, account: Account, outcome: AttemptOutcome) -> wire.Ended:
        """What the parent is told at the end of an attempt, of which nothing is needed then; on the writing thread."""
        try:
            return account.end(outcome)
        except BaseException as error:  # of what the user's code left behind: the parent waits for an end
            return _nothing_left(key, plain_error(task_error(error, self._redactor, None)), outcome.ended)
        finally:
            self._backend.forget(key.index, key.attempt)

    def _over(self, key: wire.Key) -> None:
        self._accounts.pop(key, None)
        if self._latest.get(key.index) == key:
            del self._latest[key.index]
        self._tapes.pop(key, None)
        self._starting.discard(key)
        self._stops.pop(key, None)

    def tell_news(self) -> None:
        """Tell the parent what attempts have, as far as it is new."""
        for account in self._accounts.values():
            self._link.send(account.news)

    def _tell_news_of(self, key: wire.Key) -> None:
        account = self._accounts.get(key)
        if account is not None:
            self._link.send(account.news)

    # ---- questions

    def _ask(self, request: HumanInputRequest) -> str:
        """On an attempt's thread: have the parent ask a person."""
        attempt = CURRENT.get()
        assert attempt is not None
        question = _Question()
        number = next(self._numbers)
        self._questions[number] = question
        key = wire.Key(self._run, attempt.order.index, attempt.order.attempt)
        self._link.send(wire.Asked(number, key, request.task, request.agent, request.prompt, request.password))
        while not question.answered.wait(_LOOK):
            attempt.check()
        return question.text()


def _nothing_left(key: wire.Key, error: TaskError | None, ended: str) -> wire.Ended:
    """The end of an attempt of which nothing else is known."""
    nothing = packed_left(Left([], [], {}, None, None, None, None))
    return wire.Ended(wire.Progress(key, nothing, Usage(), 0.0, None), ended, None, error)


def _check() -> None:
    """On an attempt's thread: end it if it has to."""
    attempt = CURRENT.get()
    if attempt is not None:
        attempt.check_call()


class _Question:
    """A question that is with the parent."""

    def __init__(self) -> None:
        self.answered = threading.Event()
        self._answer: wire.Answered | None = None

    def take(self, answer: wire.Answered) -> None:
        self._answer = answer
        self.answered.set()

    def text(self) -> str:
        assert self._answer is not None
        if self._answer.error is not None:
            raise revived(self._answer.error)
        return self._answer.text or ""

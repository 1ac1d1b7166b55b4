"""All that governs calls, at once: whatever is cut, refused or broken, nothing stays behind and nobody is stuck."""

import random

import openai
import pytest
from gate_harness import HELLO, InThread, ask, harness

from ag2_parallel import Budget, RateLimit, RetryPolicy
from ag2_parallel.errors import TaskStopped
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.gate.adaptive import Window
from ag2_parallel.gate.budget import Spending
from ag2_parallel.gate.limits import SlotLimit, TokenLimit
from ag2_parallel.gate.pacing import EndpointPace
from ag2_parallel.gate.wishes import CallLimits
from ag2_parallel.redaction import Redactor
from ag2_parallel.testing import Fault, ModelServer, Reply
from conftest import SOAK

AT_ONCE, CALLERS = 16, 24
LIMITS = (
    RateLimit(concurrent=AT_ONCE),
    RateLimit(concurrent=6, model="big"),
    RateLimit(concurrent=8, group="night"),
    RateLimit(requests=300, per=1),
    RateLimit(tokens=200_000, per=1),
)
SEEDS = range(40 if SOAK else 6)


@pytest.fixture
def engine():
    with harness() as made:
        yield made


class Trouble:
    """What a server does, by seed and number."""

    def __init__(self, seed):
        self._seed = seed

    def __call__(self, request):
        draw = random.Random(f"{self._seed} {request.number}")
        bad = [
            Fault.status(429, retry_after="0.05"), Fault.status(429), Fault.status(500), Fault.status(400),
            Fault.reset(), Fault.garbage(), Fault.half_stream(), Fault.hang(0.3), Fault.trickle(0.02, "slow it is"),
        ]  # fmt: skip
        if draw.random() < 0.3:
            return draw.choice(bad)
        return Reply("a b c", usage=(draw.randint(1, 90), draw.randint(1, 90)), latency=draw.choice([0, 0.02, 0.15]))


class Caller:
    """One attempt and what its worker does with it: some calls, one after the other or two at once."""

    def __init__(self, engine, server, draw, spending, number):
        self.attempt = engine.attempt(
            RetryPolicy(4, initial=0.01, maximum=0.05),
            limits=CallLimits(LIMITS, adaptive=draw.random() < 0.8, hedge_after=draw.choice([None, 0.01])),
            group=draw.choice([None, "night"]),
            priority=draw.randint(-1, 2),
            spending=spending.of(number),
            waited_for=self.waited_for,
        )
        self.by_limit = 0.0
        self._server = server
        self._key = draw.choice(["sk-one", "sk-two"])
        self._ways = [
            draw.choice(["whole", "stream", "other client", "two at once"]) for _ in range(draw.randint(1, 4))
        ]
        self._model = draw.choice(["big", "small"])

    def waited_for(self, _name, seconds):
        self.by_limit += seconds

    def work(self):
        for way in self._ways:
            try:
                self._call(way)
            except (openai.APIError, RuntimeError, StatusError):
                continue

    def _call(self, way):
        if way == "other client":
            self.attempt.foreign_call(
                self._sent_by_another, model=self._model, endpoint="elsewhere", usage=lambda _: None,
                failed=lambda error: task_error(error, Redactor()), estimate=50,
            )  # fmt: skip
        elif way == "two at once":
            for one in [InThread(self._call, way) for way in ("whole", "stream")]:
                one.join()
        else:
            made = openai.OpenAI(
                base_url=self._server.base_url, api_key=self._key, max_retries=0, timeout=2,
                http_client=self.attempt.http_client(),
            )  # fmt: skip
            asked = {"model": self._model, "messages": HELLO, "max_tokens": 2000}
            if way == "whole":
                made.chat.completions.create(**asked)
            else:
                for _ in made.chat.completions.create(**asked, stream=True):
                    pass

    def _sent_by_another(self):
        if random.random() < 0.2:
            raise StatusError
        return "answer"


class StatusError(Exception):
    status_code = 503


def left_over(engine):
    """What limits still hold."""

    def look():
        turnstile = engine.gate._shared.turnstile
        found = {"waiting": turnstile.waiting or turnstile._admission.waiting}
        for limit in turnstile.routes._shared.values():
            held = {"waiters": limit.waiters, "ahead": sum(limit._queued.values())}
            if isinstance(limit, SlotLimit):
                held["busy"] = limit._busy
            elif isinstance(limit, TokenLimit):
                held["reserved"] = limit._may_come_back
            elif isinstance(limit, Window):
                held["busy"] = limit.in_flight
            elif isinstance(limit, EndpointPace):
                held["busy"] = limit._in_flight
            found |= {f"{limit.name}: {what}": number for what, number in held.items()}
        return {name: number for name, number in found.items() if number}

    return engine.on_loop(look)


@pytest.mark.parametrize("budget", [10**9, 2500], ids=["budget", "small budget"])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_nothing_is_left_and_nobody_is_stuck(engine, seed, budget):
    draw = random.Random(seed)
    spending = Spending(Budget(max_tokens=budget), on_reached=lambda _: None, on_refused=lambda _: None)
    with ModelServer(Trouble(seed)) as server:
        callers = [Caller(engine, server, draw, spending, number) for number in range(CALLERS)]
        begun = engine.loop.time()
        threads = [InThread(caller.work) for caller in callers]
        to_cut = draw.sample(callers, 8)
        for number, caller in enumerate(to_cut):
            server.ledger.wait_for(lambda ledger, number=number: ledger.count >= 3 * number, 0.5)
            engine.cut(caller.attempt)
        for thread in threads:
            thread.join()
            assert thread.error is None or isinstance(thread.error, TaskStopped)
        lasted = engine.loop.time() - begun
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
        assert engine.on_loop(lambda: None) is None
        assert left_over(engine) == {}
        assert server.ledger.peak_in_flight <= AT_ONCE + len(to_cut)
        for caller in callers:
            waits = caller.attempt.notes.waits
            assert waits == [True, False] * (len(waits) // 2)
            assert 0 <= caller.attempt.waited() <= lasted
            calls = caller.attempt.notes
            assert len(calls.named("ModelCallFinished")) <= caller.attempt.calls
            assert len(calls.named("ModelCallAdmitted")) <= len(calls.named("ModelCallQueued"))
        used = sum(caller.attempt.usage().total_tokens for caller in callers)
        assert server.ledger.tokens_sent - used >= 0


def test_slots_that_were_given_back_can_all_be_used_again(engine):
    limits = CallLimits((RateLimit(concurrent=4),), adaptive=True, hedge_after=0.05)
    with ModelServer(Fault.hang()) as server:
        for _ in range(5):
            attempts = [engine.attempt(limits=limits) for _ in range(12)]
            threads = [InThread(ask, attempt, server) for attempt in attempts]
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 4)
            for attempt in attempts:
                engine.cut(attempt)
            assert all(isinstance(thread.join().error, TaskStopped) for thread in threads)
            assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 0)
        assert left_over(engine) == {}
        assert server.ledger.peak_in_flight == 4


def test_waits_of_calls_side_by_side_count_once(engine):
    limits = CallLimits((RateLimit(requests=10, per=1),))
    with ModelServer("x") as server:
        attempt = engine.attempt(limits=limits)
        begun = engine.loop.time()
        calls = [InThread(ask, attempt, server) for _ in range(8)]
        assert [call.join().error for call in calls] == [None] * 8
        assert 0.5 <= attempt.waited() <= engine.loop.time() - begun


def test_a_cut_of_those_in_front_lets_those_behind_go(engine):
    """A queue whose first wait for a limit that never frees them, and leave."""
    limits = CallLimits((RateLimit(concurrent=1, model="big"), RateLimit(concurrent=2)))
    with ModelServer(lambda request: Fault.hang() if request.model == "big" else "fine") as server:
        holder = engine.attempt(limits=limits)
        held = InThread(ask, holder, server, model="big")
        assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)
        front = [engine.attempt(limits=limits, priority=5) for _ in range(3)]
        stuck = [InThread(ask, attempt, server, model="big") for attempt in front]
        assert all(attempt.notes.waits_now.wait(5) for attempt in front)
        behind = engine.attempt(limits=limits)
        assert ask(behind, server, model="small").choices[0].message.content == "fine"
        for attempt in [*front, holder]:
            engine.cut(attempt)
        assert all(isinstance(call.join().error, TaskStopped) for call in [*stuck, held])
        assert left_over(engine) == {}

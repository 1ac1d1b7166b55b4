"""A thousand tasks at a server that answers one call in five badly: every task gets its own answer or its own error."""

import json
import random
import threading
import time
from collections import defaultdict

import psutil
import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask, RetryPolicy
from ag2_parallel.testing import Fault, ModelServer, Reply
from conftest import SOAK

TASKS, WORKERS, TRIES = 1000, 64, 3
SEEDS = range(20 if SOAK else 1)

FAULTS = {
    "429": Fault.status(429, retry_after="0.05"),
    "quota": Fault.status(429, code="insufficient_quota"),
    "500": Fault.status(500),
    "503": Fault.status(503),
    "reset": Fault.reset(),
    "garbage": Fault.garbage(),
    "trickle": Fault.trickle(0.2),
    "hang": Fault.hang(),
}
KINDS = {
    "429": "rate_limit",
    "500": "provider",
    "503": "provider",
    "reset": "connection",
    "garbage": "invalid_answer",
    "hang": "timeout",
}
"""Kinds after the last try; the others end a task at once."""


class Fire:
    """What the server does, by seed, task and try, and a note of it."""

    def __init__(self, seed):
        self._seed = seed
        self._lock = threading.Lock()
        self.served = defaultdict(list)

    async def reply(self, request):
        name = request.last_text.rpartition(" ")[2]
        with self._lock:
            tries = self.served[name]
            draw = random.Random(f"{self._seed} {name} {len(tries)}")
            what = draw.choice(list(FAULTS)) if draw.random() < 0.2 else "answer"
            if what == "garbage" and request.stream:
                what = "reset"  # bytes of a stream are the client's to understand
            tries.append(what)
        return FAULTS.get(what) or Reply(f"the answer for {name}", usage=self._usage(name, len(tries)))

    def _usage(self, name, number):
        draw = random.Random(f"{self._seed} {name} {number} tokens")
        return draw.randint(1, 500), draw.randint(1, 500)

    def given_up(self):
        """Tokens of answers that came after the client's patience: none, unless the machine stood still."""
        return sum(
            sum(self._usage(name, number))
            for name, tries in self.served.items()
            for number, what in enumerate(tries[:-1], 1)
            if what == "answer"
        )

    def expected(self, name):
        """Status and kind."""
        tries = self.served[name]
        last = tries[-1]
        if last == "answer":
            return "succeeded", None
        if last == "trickle" or (last == "hang" and len(tries) < TRIES):  # the task's limit came first
            return "timed_out", "timeout"
        if last == "quota":
            return "failed", "quota"
        # On a connection used before, a reset may be a farewell that crossed the request, which is sent once more.
        assert TRIES <= len(tries) <= TRIES + tries.count("reset"), f"{name} was given up after {tries}"
        return "failed", KINDS[last]


def asking(llm_config, *, stream):
    """A task without agents: one call through the gate, read whole or as it comes."""

    def ask(ctx):
        entry = ctx.llm_config(llm_config).config_list[0]
        body = {"model": "m", "messages": [{"role": "user", "content": ctx.prompt}], "stream": stream}
        with entry.http_client.stream("POST", f"{entry.base_url}/chat/completions", json=body, timeout=3) as response:
            text = response.read().decode()
            response.raise_for_status()
        if not stream:
            return json.loads(text)["choices"][0]["message"]["content"]
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        assert "data: [DONE]" in text
        return "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])

    return ask


def tasks_for(server):
    llm_config = server.llm_config(timeout=3)
    for index in range(TASKS):
        name = f"case-{index}"
        work = {"agent_config": {"llm_config": llm_config}}
        if index % 3:
            work = {"run": asking(llm_config, stream=index % 3 == 2)}
        yield ParallelTask(name, f"I am {name}", timeout=20, **work)


def settle(look, baseline):
    """Wait until a count is back where it was."""
    for _ in range(200):
        if look() <= baseline:
            break
        time.sleep(0.05)
    return look()


@pytest.mark.timeout(150)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_task_settles_rightly(seed):
    fire = Fire(seed)
    files, threads = psutil.Process().num_fds, threading.active_count
    with ModelServer(fire.reply) as server:
        before = files(), threads()
        runner = ParallelAgentRunner(
            max_workers=WORKERS, model_retry=RetryPolicy(TRIES, initial=0.02), grace=2, progress=False
        )
        results = runner.run(list(tasks_for(server)))
        assert len(results) == TASKS
        for name, result in results.items():
            got = result.status, result.error and result.error.kind
            assert got == fire.expected(name), f"{name}: {fire.served[name]}, {result.error}"
            if result.ok:
                assert result.output == f"the answer for {name}"
            if result.status == "timed_out":
                assert result.ended in {"cut", "unwound"}
        bad = sum(what != "answer" for tries in fire.served.values() for what in tries)
        assert 0.15 < bad / server.ledger.count < 0.25
        assert {what for tries in fire.served.values() for what in tries} == {*FAULTS, "answer"}
        assert 0 <= server.ledger.tokens_sent - results.usage.total_tokens <= fire.given_up()
        assert server.ledger.peak_in_flight <= WORKERS
        assert server.ledger.wait_for(lambda ledger: ledger.connections == 0 and ledger.in_flight == 0)
        assert settle(threads, before[1]) <= before[1]
        assert settle(files, before[0]) <= before[0]

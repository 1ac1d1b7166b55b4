"""Whole runs with everything on: limits, adaptive concurrency, hedging, budget, breaker, journal, retries."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from ag2_parallel import Breaker, Budget, ParallelAgentRunner, ParallelTask, RateLimit, RetryPolicy
from ag2_parallel.testing import Fault, ModelServer, Reply
from conftest import SOAK

SEEDS = range(20 if SOAK else 3)


class Trouble:
    """One call in five goes wrong, by seed and number."""

    def __init__(self, seed):
        self._seed = seed
        self.over = False

    def __call__(self, request):
        draw = random.Random(f"{self._seed} {request.number}")
        if draw.random() < 0.2 and not self.over:
            return draw.choice(
                [Fault.status(429, retry_after="0.1"), Fault.status(500), Fault.reset(), Fault.status(418)]
            )
        return Reply(f"of {request.last_text}", usage=(draw.randint(1, 50), 10), latency=draw.choice([0, 0.02, 0.2]))


def asking(config, steps):
    """So many steps, each of one call or of three side by side."""

    def ask(ctx):
        entry = ctx.llm_config(config).config_list[0]

        def one(text):
            body = {"model": "m", "messages": [{"role": "user", "content": text}]}
            response = entry.http_client.post(f"{entry.base_url}/chat/completions", json=body)
            response.raise_for_status()
            return json.loads(response.content)["choices"][0]["message"]["content"]

        said = []
        for step in range(steps):
            texts = [f"{ctx.name} {step} {part}" for part in range(3 if step % 2 else 1)]
            with ThreadPoolExecutor(3) as pool:
                said += pool.map(one, texts)
        return said

    return ask


def union(spans):
    """Seconds in which at least one of the spans is."""
    total, until = 0.0, 0.0
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0.0, span.end - max(until, span.start))
        until = max(until, span.end)
    return total


@pytest.mark.parametrize("count_waiting", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_waits_are_accounted_and_what_succeeded_is_not_asked_again(seed, count_waiting, tmp_path):
    draw = random.Random(seed)
    options = {
        "max_workers": 12,
        "rate_limits": [RateLimit(requests=60, per=1), RateLimit(concurrent=8), RateLimit(tokens=30_000, per=1)],
        "adaptive": True,
        "hedge_after": 0.1,
        "budget": Budget(max_tokens=10**9, max_task_tokens=10**6),
        "breaker": Breaker(same_failures=50),
        "journal": tmp_path / "runs.db",
        "model_retry": RetryPolicy(4, initial=0.02),
        "retry": RetryPolicy(3, initial=0.1),
        "timeout": 30 if count_waiting else 3,
        "count_waiting": count_waiting,
        "progress": False,
    }
    trouble = Trouble(seed)
    with ModelServer(trouble) as server:
        config = server.llm_config()
        tasks = [
            ParallelTask(f"t{n}", "x", run=asking(config, draw.randint(1, 4)), priority=draw.randint(0, 2))
            for n in range(24)
        ]
        results = ParallelAgentRunner(**options).run(tasks)
        for name, result in results.items():
            assert 0 <= result.waited <= result.duration
            waits = union(span for span in result.trace if span.kind in {"wait", "backoff"})
            assert result.waited == pytest.approx(waits, abs=0.02 + 0.02 * result.attempts), name
            if result.ok:
                assert all(said.startswith(f"of {name} ") for said in result.output)
            else:
                assert result.error.kind in {"configuration", "provider", "rate_limit", "connection"}, result.error
        assert results.usage.total_tokens <= server.ledger.tokens_sent
        trouble.over, asked = True, server.ledger.count
        again = ParallelAgentRunner(**options).resume(options["journal"], tasks)
        assert again.ok
        assert {request.text.partition(" ")[0] for request in server.ledger.requests[asked:]} <= {
            result.name for result in results.failed
        }

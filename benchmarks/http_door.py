"""What a model call costs: the OpenAI SDK with its own HTTP client beside the same SDK through the runner's gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hand_written
from comparison import Comparison, Load

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag2_parallel import TaskContext


def own_client(load: Load) -> Callable[[int], int]:
    """The SDK as it comes; its client is made before the clock starts."""
    import openai

    client = openai.OpenAI(base_url=load.base_url, api_key=hand_written.KEY, max_retries=0)
    return lambda calls: _ask(client, calls)


def gate(load: Load) -> Callable[[int], int]:
    """The SDK with the HTTP client that the runner gives a task; making it, and the run, are inside the clock."""
    import openai

    from ag2_parallel import ParallelAgentRunner, ParallelTask

    def run(calls: int) -> int:
        def task(ctx: TaskContext) -> int:
            entry = ctx.llm_config(hand_written.llm_config(load.base_url)).config_list[0]
            client = openai.OpenAI(
                base_url=load.base_url, api_key=hand_written.KEY, max_retries=0, http_client=entry.http_client
            )
            return _ask(client, calls)

        results = ParallelAgentRunner(max_workers=1, progress=False).run([ParallelTask("calls", run=task)])
        results.raise_for_failures()
        return int(results[0].output)

    return run


def _ask(client: Any, calls: int) -> int:
    answered = 0
    for number in range(calls):
        messages = [{"role": "user", "content": hand_written.prompt(number)}]
        answer = client.chat.completions.create(model=hand_written.MODEL, messages=messages)
        answered += bool(answer.choices[0].message.content)
    return answered


COMPARISON = Comparison(
    title="the SDK with its own HTTP client beside the SDK through the gate, one call after another",
    sides={"own client": own_client, "gate": gate},
    load=Load(tasks=1000, workers=1, latency=0.0),
    quick=Load(tasks=20, workers=1, latency=0.0),
    columns=("wall", "cpu", "cpu_per_task", "calls_per_task"),
    shown_ratios=(("gate", "cpu", "own client"), ("gate", "wall", "own client")),
)

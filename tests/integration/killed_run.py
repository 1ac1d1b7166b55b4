"""A run that a test kills: many tasks of some model calls each, with a journal. Run as a program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ag2_parallel import ParallelAgentRunner, ParallelTask

CALLS = 3


def agent_for(base_url):
    """A factory of an agent that answers by way of a tool, turn after turn: `CALLS` model calls a task."""

    def build(ctx):
        from autogen import ConversableAgent

        config = {"model": "m", "api_key": "sk-test-0123456789abcdef", "base_url": base_url}
        agent = ConversableAgent(
            "clerk", llm_config=ctx.llm_config({"config_list": [config]}), human_input_mode="NEVER"
        )

        @agent.register_for_llm(description="Look a file up.")
        def look_up(file: str) -> str:
            return f"{ctx.name}: nothing in {file}"

        return agent

    return build


def tasks(base_url, count):
    build = agent_for(base_url)
    return [ParallelTask(f"case {i}", f"case {i}", agent=build) for i in range(count)]


def main(base_url, journal, count, workers, told):
    runner = ParallelAgentRunner(max_workers=int(workers), journal=journal, progress=False)
    results = runner.run(tasks(base_url, int(count)), run_id="killed")
    summary = {
        "ok": results.ok,
        "outputs": {name: result.output for name, result in results.items()},
        "replayed": sum(result.replayed_calls for result in results.values()),
        "resumed": results.metrics.get("resumed"),
    }
    Path(told).write_text(json.dumps(summary), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

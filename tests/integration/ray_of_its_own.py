"""A run with a journal in actors of a Ray that it starts itself. A test kills it. Run as a program."""

import json
import sys
import time
from pathlib import Path

from ag2_parallel import ParallelAgentRunner, ParallelTask, RayBackend


def works(ctx):
    """Be quick for the first tasks; the others wait for a file that tells them that they may."""
    ctx.report("here")
    may = Path(ctx.metadata)
    while int(ctx.name) >= 4 and not may.exists():
        ctx.check()
        time.sleep(0.02)
    return f"{ctx.name} is done"


def seen(event):
    if event.type in {"TaskReported", "TaskFinished"}:
        print(event.type, event.task, flush=True)


def main(journal, may):
    tasks = [ParallelTask(str(i), run=works, metadata=may) for i in range(8)]
    backend = RayBackend(actors=1)
    with ParallelAgentRunner(4, backend=backend, journal=journal, progress=False, observers=[seen]) as runner:
        results = runner.run(tasks, run_id="killed")
    import ray

    told = {"outputs": [result.output for result in results.values()], "connected": ray.is_initialized()}
    print(json.dumps({**told, "kept": results.metrics["resumed"]["kept"] if results.metrics.get("resumed") else 0}))


if __name__ == "__main__":
    main(*sys.argv[1:])

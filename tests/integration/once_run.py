"""A run with an effect that happens once: JOURNAL EFFECTS UNCERTAIN BLOCKS, its results on stdout.

The effect is a line in the file EFFECTS. BLOCKS says where the first life stays until it is killed: in the tool, or after it.
"""

import json
import sys
from pathlib import Path

from ag2_parallel import ParallelAgentRunner, ParallelTask, once

JOURNAL, EFFECTS, UNCERTAIN, BLOCKS = sys.argv[1:]


def stay():
    Path(EFFECTS).with_suffix(".there").touch()
    sys.stdin.read()


@once
def send(to: str) -> str:
    """Send something."""
    with Path(EFFECTS).open("a") as file:
        file.write(f"{to}\n")
    if BLOCKS == "in the tool":
        stay()
    return f"sent to {to}"


def work(_ctx):
    answer = send("anna")
    if BLOCKS == "after it":
        stay()
    return answer


if __name__ == "__main__":
    tasks = [ParallelTask("t", run=work)]
    runner = ParallelAgentRunner(journal=JOURNAL, progress=False)
    again = Path(JOURNAL).exists()
    results = runner.resume(JOURNAL, tasks, uncertain=UNCERTAIN) if again else runner.run(tasks)
    result = results["t"]
    error = None if result.error is None else [result.error.kind, result.error.type]
    sys.stdout.write(json.dumps({"output": result.output, "error": error}))

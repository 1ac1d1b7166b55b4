"""A process that may open few files: fewer calls at once, a warning, and no failure."""

import subprocess
import sys

from ag2_parallel.testing import ModelServerProcess

SCRIPT = """
import logging, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))
logging.basicConfig(format="%(message)s")
from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.events import RunWarning
from ag2_parallel.workers.attempt import CURRENT
warned = []
chat = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}
def call(ctx):
    CURRENT.get().gate.http_client().post(f"{sys.argv[1]}/chat/completions", json=chat).raise_for_status()
    return "fine"
def hear(event):
    if isinstance(event, RunWarning): warned.append(event.message)
runner = ParallelAgentRunner(max_workers=300, progress=False, observers=[hear])
results = runner.run([ParallelTask(f"t{number}", run=call) for number in range(300)])
print(len(results.succeeded), len([text for text in warned if "ulimit -n" in text]))
"""


def test_calls_wait_for_each_other_and_nothing_fails():
    with ModelServerProcess("fine", latency=0.2) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, server.base_url],
            capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip
        assert done.stdout.split() == ["300", "1"], done.stdout + done.stderr
        assert "this process may open 120 files" in done.stderr
        assert server.ledger()["peak_in_flight"] < 90

"""AG2 1.x: a thousand tasks at once, in a process that may open 1,024 files."""

import subprocess
import sys

import pytest

from ag2_parallel.testing import ModelServerProcess

SCRIPT = """
import logging, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
logging.basicConfig(format="%(message)s")
from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2_parallel import ParallelAgentRunner, ParallelTask
def agent():
    return Agent("agent", config=OpenAIConfig("scripted", api_key="k", base_url=sys.argv[1]))
runner = ParallelAgentRunner(max_workers=1000, progress=False)
results = runner.run([ParallelTask(f"t{number}", "hello", agent=agent) for number in range(1000)])
print(len(results.succeeded), results.metrics["peak"] if "peak" in results.metrics else "")
"""


@pytest.mark.timeout(120)
def test_fewer_calls_at_once_a_warning_and_no_failure():
    with ModelServerProcess("fine", latency=4.0) as server:  # all of them would be on their way at once
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, server.base_url],
            capture_output=True, text=True, timeout=110, check=False,
        )  # fmt: skip
        assert done.stdout.split()[:1] == ["1000"], done.stdout + done.stderr
        assert done.stderr.count("ulimit -n") == 1
        assert "Traceback" not in done.stderr
        assert server.ledger()["peak_in_flight"] <= 1024 * 3 // 4

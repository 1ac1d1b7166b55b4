"""Where Ray is not installed, the backend says so before anything starts."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["ray"] = None  # as if it were not installed
from ag2_parallel import MissingExtraError, ParallelAgentRunner, ParallelTask
try:
    ParallelAgentRunner(backend="ray", progress=False).run([ParallelTask("t", run=lambda ctx: print("ran"))])
except MissingExtraError as error:
    print(error)
"""


def test_it_names_the_command():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == 'backend "ray" needs Ray: pip install "ag2-parallel[ray]"\n', done.stderr

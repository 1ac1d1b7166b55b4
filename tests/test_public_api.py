"""What can be imported, and what importing costs."""

import subprocess
import sys

import ag2_parallel


def test_all_names_are_sorted_and_there():
    assert ag2_parallel.__all__ == sorted(ag2_parallel.__all__)
    assert all(hasattr(ag2_parallel, name) for name in ag2_parallel.__all__)


def test_every_public_name_is_documented():
    assert [name for name in ag2_parallel.__all__ if not getattr(ag2_parallel, name).__doc__] == []


def test_names_in_autogen_after_one_opt_in_line():
    """S1: names are added, nothing of AG2 is replaced."""
    code = """
import autogen, ag2_parallel
before = dict(vars(autogen))
ag2_parallel.add_to_autogen()
ag2_parallel.add_to_autogen()
from autogen import ParallelAgentRunner, ParallelTask, ParallelTaskResult, run_agents_parallel
assert ParallelAgentRunner is ag2_parallel.ParallelAgentRunner
assert all(vars(autogen)[name] is value for name, value in before.items())
autogen.ParallelTask = "AG2's own"
try:
    ag2_parallel.add_to_autogen()
except ag2_parallel.ConfigurationError as error:
    assert "ParallelTask" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_loads_nothing_heavy_and_has_no_side_effect():
    """S13: no framework, no HTTP library, no thread, no log handler, no environment variable."""
    code = """
import logging, os, sys, threading
before = dict(os.environ)
import ag2_parallel
heavy = {"autogen", "ag2", "aiohttp", "rich", "openai", "httpx", "pydantic", "typer", "jinja2", "ray"} & set(sys.modules)
assert not heavy, heavy
assert threading.active_count() == 1
assert not logging.getLogger().handlers and not logging.getLogger("ag2_parallel").handlers
assert dict(os.environ) == before
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_run_of_plain_functions_loads_no_framework_and_no_http():
    code = """
import sys
from ag2_parallel import ParallelAgentRunner
results = ParallelAgentRunner(progress=False).run([{"name": "t", "run": lambda ctx: 1}])
assert results["t"].output == 1
heavy = {"autogen", "ag2", "aiohttp", "openai", "httpx", "rich"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)

"""What can be imported, and what importing costs."""

import subprocess
import sys

import ag2_parallel


def test_all_names_are_sorted_and_there():
    assert ag2_parallel.__all__ == sorted(ag2_parallel.__all__)
    assert all(hasattr(ag2_parallel, name) for name in ag2_parallel.__all__)


def test_every_public_name_is_documented():
    assert [name for name in ag2_parallel.__all__ if not getattr(ag2_parallel, name).__doc__] == []


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

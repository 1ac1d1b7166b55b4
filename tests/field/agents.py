"""A model that does what the prompt says, and ways to run tasks; shared by the tests on field reports.

The agents themselves come in two lines, `classic_line` and `ag2_line`, modules with the same names. A test that
takes the fixture `line` runs on each line that is installed.
"""

import copyreg
import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from ag2_parallel import ParallelAgentRunner, RateLimit
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall
from ag2_parallel.testing.model_server import llm_config

HERE = Path(__file__).parent

LINES = {"classic": "autogen", "ag2": "ag2"}
INSTALLED = [line for line, package in LINES.items() if importlib.util.find_spec(package) is not None]
"""The lines of AG2 that are there."""

# ---- the model


def by_prompt(request):
    """Tool results are repeated; else the prompt's first word says what to do, and any other prompt is echoed."""
    results = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
    if results:
        return " & ".join(results)
    word, _, rest = request.last_text.partition(" ")
    if word == "call":
        return Reply(tool_calls=[ToolCall(tool["function"]["name"]) for tool in request.tools])
    if word == "hang":
        return Fault.hang()
    if word == "status":
        return Fault.status(int(rest))
    if word == "after":
        seconds, _, text = rest.partition(" ")
        return Reply(text, latency=float(seconds))
    return f"echo: {request.last_text}"


def served(reply=by_prompt, **options):
    """A model server, to be used in a `with` block."""
    return ModelServer(reply, **options)


class Address:
    """A model server in another process."""

    def __init__(self, base_url):
        self.base_url = base_url

    def llm_config(self, **entry):
        return llm_config(self.base_url, "scripted", entry)


class Routed:
    """A model server as a task's own factory reaches it: without a TLS set-up for each agent."""

    def __init__(self, ctx, server):
        self.ctx = ctx
        self.server = server


def broken_factory(error):
    def make():
        raise error

    return make


# ---- running

BACKEND = os.environ.get("AG2_PARALLEL_FIELD_BACKEND", "local")

copyreg.pickle(ModelServer, lambda server: (Address, (server.base_url,)))
"""Another process asks the server that is here."""

GOVERNED = {
    "rate_limits": [RateLimit(requests=1000, per=1), RateLimit(tokens=1e6, per=1), RateLimit(concurrent=50)],
    "adaptive": True,
}
"""Limits of every sort, wide enough to change nothing."""


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, "backend": BACKEND, **options})


def run(tasks, **options):
    return runner(**options).run(tasks)


def statuses(results):
    return [str(result.status) for result in results.values()]


HEAD = """
import asyncio, sys, threading, time
from agents import *
from {line} import *
import {line} as line
from ag2_parallel import *
"""


def script(
    tmp_path, body, *arguments, line, warnings=("-W", "error::ResourceWarning", "-W", "error::RuntimeWarning"), **env
):
    """Start a program that may import from here, and has the names of a line; its output is piped."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(HEAD.format(line=line.__name__)) + textwrap.dedent(body))
    stdin = env.pop("stdin", subprocess.DEVNULL)
    return subprocess.Popen(
        [sys.executable, *warnings, str(path), *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]), **env},
    )


def finished(process, timeout=50):
    """Standard output and error of a program that has to end well."""
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    busy = "the engine was held up for"  # says nothing of the program on a machine that runs other tests beside it
    return out, "".join(line for line in err.splitlines(keepends=True) if busy not in line)

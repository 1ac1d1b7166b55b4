"""Small AG2 Classic agents, and a model that does what the prompt says; shared by the tests on field reports."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from autogen import AssistantAgent, ConversableAgent

from ag2_parallel import ParallelAgentRunner
from ag2_parallel.testing import Fault, ModelServer, Reply, ToolCall
from ag2_parallel.testing.model_server import llm_config

HERE = Path(__file__).parent

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


# ---- agents; each of these is made anew by its factory


def assistant(server, name="a", **options):
    return AssistantAgent(name, llm_config=server.llm_config(), **options)


class Routed:
    """A model server as a task's own factory reaches it: without a TLS set-up for each agent."""

    def __init__(self, ctx, server):
        self._ctx = ctx
        self._server = server

    def llm_config(self, **entry):
        return self._ctx.llm_config(self._server.llm_config(**entry))


def ok(server):
    """A factory of an agent that answers the prompt."""
    return lambda ctx: assistant(Routed(ctx, server))


def replying(reply):
    """A factory of an agent without a model, whose answer is what `reply()` returns."""

    def make():
        agent = ConversableAgent("a", llm_config=False, human_input_mode="NEVER")
        agent.register_reply([ConversableAgent, None], lambda *_args, **_more: (True, reply()))
        return agent

    return make


def sleepy(seconds):
    """A factory of an agent whose own code blocks."""

    def reply():
        time.sleep(seconds)
        return "slept"

    return replying(reply)


def raises(error):
    """A factory of an agent whose own code raises."""

    def reply():
        raise error

    return replying(reply)


def broken_factory(error):
    def make():
        raise error

    return make


def with_tools(server, *tools):
    """An agent that calls all its tools when its prompt is `call`."""
    agent = assistant(server)
    for tool in tools:
        agent.register_for_llm(description=tool.__name__)(tool)
    return agent


def agent_calling(server, *tools):
    """A factory of `with_tools`."""
    return lambda ctx: with_tools(Routed(ctx, server), *tools)


def talkers(server, count=2, **options):
    """Agents that answer each other for ever."""
    return [
        ConversableAgent(
            f"w{number}",
            llm_config=server.llm_config(),
            human_input_mode="NEVER",
            max_consecutive_auto_reply=10**6,
            **options,
        )
        for number in range(count)
    ]


# ---- running


def runner(**options):
    return ParallelAgentRunner(**{"progress": False, **options})


def run(tasks, **options):
    return runner(**options).run(tasks)


def statuses(results):
    return [str(result.status) for result in results.values()]


HEAD = """
import asyncio, sys, threading, time
from agents import *
from ag2_parallel import *
"""


def script(tmp_path, body, *arguments, warnings=("-W", "error::ResourceWarning", "-W", "error::RuntimeWarning"), **env):
    """Start a program that may import from here; its output is piped."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
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
    return out, err

"""The command line as a process, and code that its tasks run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

KEY = "sk-live-abcdef0123456789"
SOURCES = str(Path(__file__).parents[2] / "src")

CODE = '''
import threading, time

def quick(ctx):
    return f"did {ctx.prompt}"

def broken(ctx):
    raise ValueError("no such thing")

def slow(ctx):
    open(f"started-{ctx.name}", "w").close()
    for _ in range(1200):
        ctx.check()
        time.sleep(0.05)

def count_words(text: str) -> int:
    """Counts words."""
    return len(text.split())
'''


def start(arguments, folder, **environment):
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.Popen(
        [sys.executable, "-m", "ag2_parallel", *map(str, arguments)],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE,
        env={**env, "PYTHONPATH": SOURCES, **environment},
    )  # fmt: skip


def run(arguments, folder, given=None, *, patience=50, **environment):
    with start(arguments, folder, **environment) as process:
        out, err = process.communicate(given, timeout=patience)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def wait_until(condition, process):
    while not condition():
        assert process.poll() is None
        time.sleep(0.02)


def rows_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


TEAMS = """
llm_config: {config_list: [{model: m, base_url: "${OPENAI_BASE_URL}", api_key: "${OPENAI_API_KEY}"}]}
agents:
  counter: {system_message: the counter, tools: ["work:count_words"]}
  critic: {system_message: the critic}
  boss: {type: UserProxyAgent}
teams:
  pair: {pattern: two_agent, agents: [critic, counter], max_rounds: 2}
  circle: {pattern: round_robin, agents: [critic, counter], max_rounds: 5}
  chosen: {pattern: auto, agents: [critic, counter], max_rounds: 5, user: boss}
  asked: {pattern: round_robin, agents: [counter, critic], max_rounds: 5, user: boss}
  line: {pattern: sequence, agents: [counter, critic]}
defaults: {prompt: Go.}
tasks:
  - {name: pair, agent: pair}
  - {name: circle, agent: circle}
  - {name: chosen, agent: chosen}
  - {name: line, agent: line}
  - {name: asked, agent: asked}
  - {name: single, agent: counter}
  - {name: plain}
"""

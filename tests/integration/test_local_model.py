"""A real small model on this machine, through the runner. What it says is never asserted: its medicine is poor."""

import json
import re
import subprocess
import sys
import time
from typing import Literal
from urllib.request import urlopen

import psutil
import pytest
from pydantic import BaseModel

from ag2_parallel import ParallelAgentRunner, ParallelTask, Template
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.testing import LocalModelServer

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(240)]

TOKENS = 24
SUBJECTS = ("bread", "rivers", "clocks", "horses", "paper", "winter")


@pytest.fixture(scope="module")
def model():
    with LocalModelServer(parallel=4, threads=1, context=2048) as server:
        yield server


def config(model, **entry):
    return model.llm_config(max_tokens=TOKENS, temperature=0.2, **entry)


def test_config_dicts_in_parallel(model):
    tasks = [
        {
            "name": subject,
            "agent_config": {
                "system_message": "You are a helpful assistant.",
                "llm_config": config(model, stream=subject == "clocks"),
            },
            "prompt": f"Say one sentence about {subject}.",
        }
        for subject in SUBJECTS
    ]
    results = ParallelAgentRunner(max_workers=4, timeout=120).run(tasks)
    results.raise_for_failures()
    assert all(result.summary.strip() for result in results.values())
    assert len({result.summary for result in results.values()}) > 1
    assert all(0 < result.usage.completion_tokens <= TOKENS for result in results.values())
    assert all(result.usage.prompt_tokens > 0 and result.usage.cost == 0 for result in results.values())
    assert (results.usage.calls, results.usage.unreported_calls) == (6, 0)
    assert results.metrics["concurrency"]["peak"] > 1


def test_group_chat_teams_and_a_task_that_depends_on_them(model):
    def team(ctx):
        from autogen import ConversableAgent, GroupChat

        llm_config = ctx.llm_config(config(model))
        members = [
            ConversableAgent(role, system_message=f"You are the {role}. Be brief.", llm_config=llm_config)
            for role in ("planner", "writer", "critic")
        ]
        return GroupChat(agents=members, messages=[], max_round=4, speaker_selection_method="round_robin")

    topics = ("tides", "bees")
    tasks = [ParallelTask(topic, f"Write about {topic}.", agent=team) for topic in topics]
    prompt = Template("Join: {{ upstream.tides.summary }} {{ upstream.bees.summary }}")
    tasks.append(ParallelTask("joined", prompt, agent_config={"llm_config": config(model)}, depends_on=topics))
    results = ParallelAgentRunner(timeout=180).run(tasks)
    results.raise_for_failures()
    for topic in topics:
        assert [message["name"] for message in results[topic].chat_history] == ["user", "planner", "writer", "critic"]
        assert results[topic].usage.calls == 3
    assert results["tides"].summary in str(results["joined"].chat_history[0]["content"])


def test_answers_in_a_type_of_ones_own(model):
    class Verdict(BaseModel):
        mood: Literal["good", "bad"]
        certain: bool

    texts = ("I love this kettle.", "The lamp broke at once.")
    tasks = [ParallelTask(text, f"Judge this review: {text}", output_type=Verdict, output_retries=1) for text in texts]
    llm_config = model.llm_config(max_tokens=48, temperature=0)
    results = ParallelAgentRunner(timeout=120, llm_config=llm_config).run(tasks)
    results.raise_for_failures()
    assert all(isinstance(result.output, Verdict) for result in results.values())


def processing(model):
    with urlopen(f"{model.base_url.removesuffix('/v1')}/slots", timeout=30) as response:
        return sum(slot["is_processing"] for slot in json.load(response))


def test_a_deadline_cuts_a_generation_and_frees_its_slot(model):
    """The answer would be of 1,800 tokens, most of a minute: nothing but the cut ends it in time."""
    endless = model.llm_config(max_tokens=1800, extra_body={"ignore_eos": True})
    tasks = [
        ParallelTask("cut", "Tell a very long story.", agent_config={"llm_config": endless}, timeout=2),
        ParallelTask("unharmed", "Say hello.", agent_config={"llm_config": config(model)}),
    ]
    results = ParallelAgentRunner(timeout=120).run(tasks)
    cut = results["cut"]
    assert (str(cut.status), cut.stop_reason, cut.error.kind) == ("timed_out", "deadline", "timeout")
    assert cut.ended in {"unwound", "cut"}
    assert cut.duration < 2 * 2
    assert (cut.usage.calls, cut.usage.unreported_calls) == (0, 1)
    assert results["unharmed"].ok
    looks = 5
    while processing(model):
        looks -= 1
        assert looks, "the model goes on generating for a task that is over"
        time.sleep(
            2
        )  # the server looks for clients that are gone after a second without any answer, also to this question


def test_a_file_that_is_no_model_is_refused(tmp_path):
    fake = tmp_path / "fake.gguf"
    fake.write_bytes(b"no model")
    server = LocalModelServer(fake, threads=1)
    with pytest.raises(ConfigurationError, match=r"fake\.gguf could not be served; its process ended with code 1"):
        server.start()
    assert server.pid is None


def test_the_server_ends_with_its_parent():
    code = (
        "import os, sys\n"
        "from ag2_parallel.testing import LocalModelServer\n"
        "server = LocalModelServer(parallel=1, threads=1, context=256).start()\n"
        "assert server.start() is server\n"
        "print(server.pid, flush=True)\n"
        "sys.stdin.readline()\n"
        "os._exit(0)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
        assert psutil.wait_procs([child], timeout=10)[1] == []


def demo(out, *options):
    command = [sys.executable, "-m", "ag2_parallel", "demo", "--real", "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=220, check=False)
    assert "A real, very small model" in (out / "assessment.md").read_text()
    assert "scripted" not in "".join(path.read_text() for path in out.iterdir())
    return done


def test_the_demo_asks_the_real_model(tmp_path):
    done = demo(tmp_path, "--timeout", "3")
    assert done.returncode == 1, done.stderr
    assert len(re.findall(r"│ timed_out ", done.stdout)) == 5
    assert "6 of 6 tasks did not succeed: no comparison" in done.stdout


@pytest.mark.soak
def test_the_whole_demo_on_the_real_model(tmp_path):
    done = demo(tmp_path)
    assert "reduction:          not measured" in done.stdout
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"│ succeeded ", done.stdout)) == 6

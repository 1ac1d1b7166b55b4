"""The model server as a program: it says where it is, serves, and ends when asked to."""

import json
import os
import signal
import subprocess
import sys

import httpx
import pytest

from ag2_parallel.testing import ModelServerProcess

MODULE = "ag2_parallel.testing.model_server"


def ask(base_url):
    body = {"messages": [{"role": "user", "content": "hello"}]}
    return httpx.post(f"{base_url}/chat/completions", json=body, trust_env=False).json()


@pytest.fixture
def program():
    command = [sys.executable, "-m", MODULE, "--port", "0", "--latency", "0", "--reply", "hi", "--no-usage"]
    command.append("--until-stdin-ends")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process
        process.stdin.close()


def test_it_says_where_it_is_and_ends_with_its_standard_input(program):
    base_url = json.loads(program.stdout.readline())["base_url"]
    body = ask(base_url)
    assert body["choices"][0]["message"]["content"] == "hi"
    assert "usage" not in body
    program.stdin.write(b"what comes in means nothing\n")
    program.stdin.flush()
    assert "usage" not in ask(base_url)
    program.stdin.close()
    assert program.wait(20) == 0
    assert program.stderr.read() == b""
    assert program.stdout.read() == b""


def test_it_ends_on_sigterm(program):
    json.loads(program.stdout.readline())
    program.send_signal(signal.SIGTERM)
    assert program.wait(20) == 0
    assert program.stderr.read() == b""


def test_in_the_background_of_a_shell_it_serves_until_a_signal_comes():
    command = [sys.executable, "-m", MODULE, "--reply", "hi"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        base_url = json.loads(process.stdout.readline())["base_url"]
        assert ask(base_url)["choices"][0]["message"]["content"] == "hi"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_the_context_manager_offers_it_to_benchmarks():
    process = ModelServerProcess(latency=0.01, models=("a", "b"))
    with pytest.raises(RuntimeError, match="does not run"):
        _ = process.base_url
    assert process.pid is None
    with process:
        assert process.start() is process
        assert process.pid
        assert ask(process.base_url)["choices"][0]["message"]["content"] == "echo: hello"
        counts = process.ledger()
        assert (counts["count"], counts["answered"], counts["tokens_sent"]) == (1, 1, 3)
        process.reset_ledger()
        assert process.ledger()["count"] == 0
        (entry,) = process.llm_config(price=[0, 0])["config_list"]
        assert (entry["model"], entry["base_url"], entry["price"]) == ("a", process.base_url, [0, 0])
        models = httpx.get(f"{process.base_url}/models", trust_env=False).json()["data"]
        assert [model["id"] for model in models] == ["a", "b"]
    process.close()
    with pytest.raises(RuntimeError, match="does not run"):
        process.ledger()


def test_a_program_that_cannot_serve_says_so(capfd):
    with ModelServerProcess("text") as first:
        port = int(first.url.rsplit(":", 1)[1])
        second = ModelServerProcess(port=port, include_usage=False)
        with pytest.raises(RuntimeError, match="ended with code 1 before it served"):
            second.start()
    assert "address already in use" in capfd.readouterr().err


def test_it_ends_also_while_another_process_holds_its_standard_input_open():
    with ModelServerProcess() as server:
        process = server._process
        held = os.dup(process.stdin.fileno())  # as a process that the caller forked would
    os.close(held)
    assert process.returncode == 0

"""Nothing lost, nothing paid twice: runs killed at any instant, and what the next life makes of them."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from browser import chromium, opened
from command_line import start as command
from killed_run import CALLS
from selenium.webdriver.common.by import By

from ag2_parallel.testing import ModelServer, Reply, ToolCall

PROGRAM = Path(__file__).with_name("killed_run.py")
ROUNDS = 100 if os.environ.get("AG2_PARALLEL_SOAK") else 3
TASKS, WORKERS = 200, 8


def answer(request):
    done = sum(message["role"] == "tool" for message in request.messages)
    case = next(message["content"] for message in request.messages if message["role"] == "user")
    if done < CALLS - 1:
        return Reply(tool_calls=[ToolCall("look_up", {"file": f"{case}/{done}"})])
    return f"the end of {case}"


def start(server, journal, told, count=TASKS):
    arguments = [sys.executable, PROGRAM, server.base_url, journal, count, WORKERS, told]
    return subprocess.Popen(list(map(str, arguments)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def killed_after(server, process, requests):
    """Kill the process once the server has seen so many requests; False where it ended before."""
    while process.poll() is None:
        if server.ledger.wait_for(lambda ledger: ledger.count >= requests, timeout=0.2):
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.timeout(90 * ROUNDS)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_run_goes_on_and_pays_for_nothing_twice(tmp_path, seed):
    """M2, F35: no finished task runs again, and at most one call for each worker is paid for twice."""
    journal, told = tmp_path / "runs.db", tmp_path / "told.json"
    with ModelServer(answer, latency=0.01) as server:
        at = random.Random(seed).randrange(1, TASKS * CALLS)
        assert killed_after(server, start(server, journal, told), at)
        in_the_first = server.ledger.count
        second = start(server, journal, told)
        _, err = second.communicate(timeout=80)
        assert second.returncode == 0, err
        calls = server.ledger.count
    summary = json.loads(told.read_text())
    assert summary["outputs"] == {f"case {i}": f"the end of case {i}" for i in range(TASKS)}
    assert calls <= TASKS * CALLS + WORKERS, (at, in_the_first, summary)
    resumed = summary["resumed"] or {"kept": 0, "again": 0}
    assert resumed["kept"] >= (in_the_first - 2 * WORKERS * CALLS) / CALLS - WORKERS
    if at > TASKS:
        assert summary["replayed"] > 0 or resumed["again"] == 0


@pytest.mark.timeout(120)
def test_the_page_of_a_killed_run_shows_no_more_tasks_at_once_than_workers(tmp_path):
    """The chart counts the attempts of all lives, each from its start to its end and no longer."""
    journal, told = tmp_path / "runs.db", tmp_path / "told.json"
    with ModelServer(answer, latency=0.01) as server:
        assert killed_after(server, start(server, journal, told), TASKS)
        second = start(server, journal, told)
        _, err = second.communicate(timeout=80)
        assert second.returncode == 0, err
    drawn = command(["timeline", journal, "--out", "run.html"], tmp_path)
    _, err = drawn.communicate(timeout=40)
    assert drawn.returncode == 0, err
    with chromium() as browser:
        opened(browser, tmp_path / "run.html")
        chart = browser.find_element(By.ID, "load").get_attribute("aria-label")
    assert chart.startswith(f"At most {WORKERS} tasks ran at once")

"""`@once` where the process is killed: the effect is not repeated, and what nobody can know is said."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("once_run.py")


def life(tmp_path, *, uncertain="fail", blocks="nowhere"):
    command = [sys.executable, PROGRAM, tmp_path / "runs.db", tmp_path / "effects", uncertain, blocks]
    return subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def killed(tmp_path, blocks):
    process = life(tmp_path, blocks=blocks)
    there = tmp_path / "effects.there"
    while not there.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    there.unlink()


def told(tmp_path, uncertain="fail"):
    out, err = life(tmp_path, uncertain=uncertain).communicate(timeout=50)
    assert out, err
    return json.loads(out), (tmp_path / "effects").read_text().split()


def test_an_effect_with_a_receipt_is_not_repeated(tmp_path):
    killed(tmp_path, "after it")
    assert told(tmp_path) == ({"output": "sent to anna", "error": None}, ["anna"])


@pytest.mark.parametrize(
    ("uncertain", "output", "error", "effects"),
    [
        ("fail", None, ["uncertain", "UncertainEffectError"], ["anna"]),
        ("repeat", "sent to anna", None, ["anna"] * 2),
        ("skip", None, None, ["anna"]),
    ],
)
def test_an_effect_that_was_cut_is_uncertain_and_the_caller_decides(tmp_path, uncertain, output, error, effects):
    killed(tmp_path, "in the tool")
    assert told(tmp_path, uncertain) == ({"output": output, "error": error}, effects)

"""Runs one side of a comparison in a process of its own, beside a model server in another."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ag2_parallel.testing import ModelServerProcess

if TYPE_CHECKING:
    from comparison import Load, Measures

_HERE = Path(__file__).parent
_PATIENCE = 600.0
"""Seconds after which a side is taken to hang."""


class SideFailedError(RuntimeError):
    """A side could not be measured."""


def measure(name: str, label: str, load: Load) -> Measures:
    """One run of a side.

    Args:
        name: The comparison's module.
        label: The side.
        load: Its size; with a latency a model server is started for this run alone.

    Raises:
        SideFailedError: If it failed or hung; with the end of what it wrote to stderr.
    """
    serving = nullcontext() if load.latency is None else ModelServerProcess("fine", latency=load.latency)
    with serving as server, tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "measures.json"
        if server is not None:
            load = replace(load, base_url=server.base_url)
        _run(name, label, load, into)
        measures: Measures = json.loads(into.read_text(encoding="utf-8"))
        if server is not None:
            measures["calls_per_task"] = server.ledger()["answered"] / (load.tasks + load.warm_up)
    return measures


def _run(name: str, label: str, load: Load, into: Path) -> None:
    command = [sys.executable, str(_HERE / "measure_side.py"), name, label]
    command += ["--load", json.dumps(asdict(load)), "--into", str(into)]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.DEVNULL,  # AG2 prints even in silent chats
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise SideFailedError(f'{name}, side "{label}": no end after {_PATIENCE:.0f} s') from late
    if done.returncode != 0:
        raise SideFailedError(f'{name}, side "{label}" ended with code {done.returncode}:\n{done.stderr[-3000:]}')

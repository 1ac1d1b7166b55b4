"""What `import ag2_parallel` costs beside `import httpx`, each time in a bare new process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from comparison import Comparison, Load, Requirement
from fresh_process import SideFailedError

if TYPE_CHECKING:
    from comparison import Measures

_PROGRAM = """
import sys, time
before = set(sys.modules)
cpu, wall = time.process_time(), time.perf_counter()
import {package}
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
new = set(sys.modules) - before
heavy = sorted(new & {{"autogen", "ag2", "aiohttp", "rich", "openai"}})
import json
print(json.dumps({{"wall": wall, "cpu": cpu, "modules": len(new), "heavy": len(heavy)}}))
"""


def measure(package: str) -> Measures:
    """Import the package in a new process that has loaded nothing else."""
    program = _PROGRAM.format(package=package)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise SideFailedError(f"import {package} failed:\n{done.stderr[-3000:]}")
    measures: Measures = json.loads(done.stdout)
    return measures


COMPARISON = Comparison(
    title="import httpx beside import ag2_parallel, in new processes",
    sides={"httpx": None, "ag2_parallel": None},
    load=Load(tasks=1, workers=1, warm_up=0),
    quick=Load(tasks=1, workers=1, warm_up=0),
    columns=("wall", "cpu", "modules", "heavy"),
    requirements=(Requirement("ag2_parallel", "wall", 0.15), Requirement("ag2_parallel", "heavy", 0)),
    shown_ratios=(("ag2_parallel", "wall", "httpx"),),
    rounds=10,
    measure=measure,
)

"""Runs the contract of the frameworks with each line of AG2 alone: Classic with openai 2.x, and AG2 1.x.

`make test` calls it: for each line it makes a virtual environment of its own beside the main one, which has both.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINES = {"classic": ["openai>=2.44,<3"], "ag2": []}
"""The lines, and what their environments need beside the project's extra of that name."""

TESTS = ["tests/contracts/test_frameworks.py", "tests/contracts/test_framework_prompts.py"]
NEEDED = ["pytest", "pytest-timeout", "pytest-xdist"]


def main():
    failed = [line for line in LINES if not passes(line)]
    if failed:
        sys.exit(f"the tests failed with {' and '.join(failed)} alone")


def passes(line):
    home = ROOT / f".venv-{line}"
    ready = home / ".ready"
    python = str(home / "bin" / "python")
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", f"{ROOT}[{line},prices]", *NEEDED, *LINES[line]], check=True)
        ready.touch()
    print(f"{line} alone:", flush=True)
    pytest = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(pytest, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    main()

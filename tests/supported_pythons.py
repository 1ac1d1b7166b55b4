"""Runs the core of the test suite on every other supported Python that is present.

`make test` calls it: for each of them it makes a virtual environment of its own beside the main one.
A Python that is not there, or cannot be started, is named and passed over.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUPPORTED = ("3.11", "3.12", "3.13")
TESTS = [
    "tests/unit/workers",
    "tests/unit/frameworks/classic",
    "tests/integration/test_runner_basics.py",
    "tests/integration/test_classic_forms.py",
    "tests/integration/test_classic_deadlines.py",
    "tests/integration/test_gate_calls.py",
]
NEEDED = ["pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "pandas"]


def main():
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    failed = [version for version in SUPPORTED if version != here and not passes(version)]
    if failed:
        sys.exit(f"the tests failed on Python {', '.join(failed)}")


def found(version):
    """The interpreter on the path, or one that pyenv has and does not offer; None if there is none that starts."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))]
    for python in filter(None, candidates):
        if subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return str(python)
    return None


def passes(version):
    python = found(version)
    if python is None:
        print(f"Python {version} is not present: not tested")
        return True
    home = ROOT / f".venv-{version}"
    ready = home / ".ready"
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not ready.exists():
        subprocess.run([python, "-m", "venv", str(home)], check=True)
        subprocess.run([*pip, "--editable", f"{ROOT}[classic,prices]", *NEEDED], check=True)
        ready.touch()
    print(f"Python {version}:", flush=True)
    pytest = [str(home / "bin" / "python"), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(pytest, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    main()

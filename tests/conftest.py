"""What all tests share."""

import os
import threading
import time

import pytest

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

"""Whether Ray is installed, and what marks the tests that need it; see the fixture `ray_of_this_machine`."""

import importlib.util

import pytest

MARKS = [
    pytest.mark.ray,
    pytest.mark.timeout(180),  # the first one starts it
    # Ray leaves sockets and pipes of its start to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning:ray"),
]

ON_RAY = [pytest.param("ray", marks=MARKS)] if importlib.util.find_spec("ray") else []
"""The parameter of tests that run on Ray as well; none where it is not installed."""

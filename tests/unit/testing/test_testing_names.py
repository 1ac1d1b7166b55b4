"""The public names of `ag2_parallel.testing`, and what importing it loads."""

import subprocess
import sys

import pytest

from ag2_parallel import testing


def test_all_is_sorted_and_every_name_is_there():
    assert testing.__all__ == sorted(testing.__all__)
    assert set(testing.__all__) <= set(dir(testing))
    assert [getattr(testing, name).__name__ for name in testing.__all__] == testing.__all__


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'MockServer'"):
        _ = testing.MockServer


def test_nothing_heavy_is_loaded_before_a_server_starts():
    code = (
        "import sys\n"
        "from ag2_parallel.testing import *\n"
        "server = ModelServer('x', latency=1)\n"
        "heavy = {'aiohttp', 'httpx', 'autogen', 'ag2', 'openai'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "with server: assert 'aiohttp' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=30, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

"""What is said of an actor that has gone."""

import pytest

from ag2_parallel import ConfigurationError, RayBackend
from ag2_parallel.backends.ray_starter import in_words

DIED = """The actor died unexpectedly before finishing this task.
\tclass_name: RayActor
\tactor_id: ce4ce4565f1bc6e9bdac361201000000
\tpid: 17571
\tip: 10.0.0.2
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly \
exits with a connection error code 2. End of file. Some common causes include: (1) the process was killed"""
NODE = """The actor died unexpectedly before finishing this task.
\tip: 10.0.0.2
The actor died because its node has died. Node Id: 80ab health check failed due to missing too many heartbeats"""
AWAY = """The actor 911de749 is unavailable: The actor is temporarily unavailable: RpcError: RPC error: Socket closed rpc_code: 14. \
The task may or may not have been executed on the actor."""
BORN_DEAD = """The actor died because of an error raised in its creation task, \x1b[36mray::RayActor.__init__()\x1b[39m (pid=1, ip=x)
  File "a.py", line 3
ModuleNotFoundError: No module named 'ag2_parallel'"""


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (DIED, "was lost on 10.0.0.2: Worker unexpectedly exits with a connection error code 2. End of file."),
        (
            NODE,
            "was lost on 10.0.0.2: its node has died. Node Id: 80ab health check failed due to missing too many heartbeats",
        ),
        (AWAY, "was lost: it cannot be reached any more (RPC error: Socket closed)"),
        (BORN_DEAD, "could not be started: ModuleNotFoundError: No module named 'ag2_parallel'"),
        ("something\nelse", "was lost: something else"),
    ],
)
def test_errors_of_ray_in_one_line(told, words):
    assert in_words(Exception(told)) == words


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"address": " "}, "address: ' ' is no address"),
        ({"actors": 0}, "actors: 0 is not a whole number from 1"),
        ({"resources": {"CPU": -1}}, "is no mapping from names to amounts"),
        ({"runtime_env": "pip"}, "runtime_env: 'pip' is no mapping"),
        ({"rerun_lost": 1}, "rerun_lost: 1 is neither True nor False"),
    ],
)
def test_options_that_make_no_sense(given, problem):
    with pytest.raises(ConfigurationError, match=problem):
        RayBackend(**given)


def test_how_many_actors():
    assert RayBackend().workers_for(8, places=4) == 4
    assert RayBackend().workers_for(2, places=4) == 2
    assert RayBackend(actors=3).workers_for(8, places=3) == 3

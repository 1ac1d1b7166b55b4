"""What may come over the wire, and what becomes of the rest."""

import io
import os
import pickle
from datetime import UTC, datetime

import pytest

from ag2_parallel.backends import wire
from ag2_parallel.backends.frames import HEAD, LONGEST, WireError, packed, read_frame, unpacked
from ag2_parallel.records import CallRecord
from ag2_parallel.results import TaskError
from ag2_parallel.usage import Usage

KEY = wire.Key("run", 3, 1)
PROGRESS = wire.Progress(KEY, b"left", Usage(calls=1, by_model={"m": Usage(calls=1)}), 0.5, "/tmp/x")
ERROR = TaskError(type="E", message="m", kind="tool")
MESSAGES = [
    wire.Hello(1, ("a", "b"), None, {"K": "v"}),
    wire.Start(KEY, b"task", 1.5, watched=True, recorded=False),
    wire.Found(KEY, 1, CallRecord(digest="d", headers=(("a", "b"),), body=b"x", usage=Usage(calls=1))),
    PROGRESS,
    wire.Ended(PROGRESS, "returned", b"answer", ERROR),
    wire.Happened("run", "TaskReported", {"message": "hi", "at": datetime.now(UTC), "usage": Usage()}),
]


def reader(data):
    return io.BytesIO(data).read


def test_messages_come_back_as_they_were():
    assert read_frame(reader(packed(MESSAGES))) == MESSAGES


def test_nothing_is_the_end():
    assert read_frame(reader(b"")) is None


class Evil:
    def __reduce__(self):
        return os.mkdir, ("made-by-a-frame",)


@pytest.mark.parametrize("value", [[Evil()], [wire.Happened("r", "E", {"x": Evil()})], [os.getcwd], [object()], [3], 3])
def test_anything_else_is_refused_and_runs_no_code(value, here):
    body = pickle.dumps(value)
    with pytest.raises(WireError):
        unpacked(body)
    assert os.listdir(here) == []


@pytest.fixture
def here(tmp_path):
    before = os.getcwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


@pytest.mark.parametrize(
    "data",
    [b"\x00\x00", HEAD.pack(10) + b"short", HEAD.pack(4) + b"rubb", HEAD.pack(LONGEST + 1), b"GET / HTTP/1.1\r\n\r\n"],
)
def test_rubbish_is_an_error(data):
    with pytest.raises(WireError):
        read_frame(reader(data))

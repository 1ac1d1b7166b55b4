"""The command line in the hands of everybody: folders, devices and pipes as files, and readers that do not read."""

import json
import os
import signal
import stat
import threading
import time

import pytest
from command_line import CODE, run, start

TASKS = "tasks:\n" + "".join(f'  - {{name: t{i}, run: "work:%s", prompt: p}}\n' for i in range(4))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text(CODE + '\ndef big(ctx):\n    return "x" * 200_000\n')
    (tmp_path / "t.yaml").write_text(TASKS % (("quick",) * 4))
    return tmp_path


@pytest.fixture
def kept(folder):
    assert run(["run", "t.yaml", "--journal", "r.db", "--run-id", "one", "--quiet"], folder)[0] == 0
    return folder


def test_an_export_takes_the_place_of_files_alone(kept):
    """A pipe stands for a device: what is there is written to, and stays what it is."""
    assert run(["export", "r.db", "--out", "."], kept)[0] == 2
    os.mkfifo(kept / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((kept / "pipe").read_text()), daemon=True)
    reader.start()
    assert run(["export", "r.db", "--out", "pipe"], kept)[0] == 0
    reader.join(10)
    assert [json.loads(line)["name"] for line in read[0].splitlines()] == ["t0", "t1", "t2", "t3"]
    assert stat.S_ISFIFO((kept / "pipe").stat().st_mode)
    (kept / "link").symlink_to("real.jsonl")
    assert run(["export", "r.db", "--out", "link"], kept)[0] == 0
    assert (kept / "link").is_symlink()
    assert len((kept / "real.jsonl").read_text().splitlines()) == 4


def test_a_page_takes_the_place_of_files_alone(kept):
    os.mkfifo(kept / "pipe.html")
    read = []
    reader = threading.Thread(target=lambda: read.append((kept / "pipe.html").read_bytes()), daemon=True)
    reader.start()
    assert run(["timeline", "r.db", "--out", "pipe.html"], kept)[0] == 0
    reader.join(10)
    assert b"<html" in read[0]
    assert stat.S_ISFIFO((kept / "pipe.html").stat().st_mode)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--journal", "nowhere/r.db"],
        ["--journal", "."],
        ["--journal", "t.yaml"],
        ["--run-id", ""],
        ["--run-id", "-x"],
        ["--out", "pipe"],
    ],
)
def test_nothing_is_run_where_a_file_or_a_name_is_wrong(folder, arguments):
    os.mkfifo(folder / "pipe")
    code, out, err = run(["run", "t.yaml", *arguments], folder)
    assert (code, out) == (2, "")
    assert "error: " in err
    assert "succeeded" not in err


def test_the_doctor_looks_into_a_journal_that_is_there(kept):
    code, out, _ = run(["doctor", "--journal", "t.yaml"], kept)
    assert code == 1
    assert "no journal" in out
    assert "r.db can be written" in run(["doctor", "--journal", "r.db"], kept)[1]


@pytest.mark.parametrize(("sent", "times", "code"), [(signal.SIGINT, 2, 130), (signal.SIGTERM, 1, 143)])
def test_the_second_stage_does_not_wait_for_a_reader_of_the_output(folder, sent, times, code):
    """Such as a pager that shows its first page."""
    (folder / "t.yaml").write_text(TASKS % ("big", "big", "slow", "slow"))
    process = start(["run", "t.yaml", "--format", "jsonl", "--workers", "2", "--quiet"], folder)
    end = time.monotonic() + 30
    while not (folder / "started-t3").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    for _ in range(times):
        time.sleep(0.3)
        process.send_signal(sent)
    at = time.monotonic()
    assert process.wait(20) == code
    assert time.monotonic() - at < 2.3
    process.communicate()

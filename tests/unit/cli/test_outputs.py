"""Result files: written as tasks finish, whole or not at all, with text of any kind."""

import csv
import json
import os
import stat
import sys

import pandas as pd
import pytest

from ag2_parallel import AttemptRecord, ConfigurationError, ParallelTaskResult, TaskError, TaskStatus, Usage
from ag2_parallel.cli.output.result_rows import COLUMNS, json_text, result_row
from ag2_parallel.cli.output.standard_output import printer
from ag2_parallel.cli.output.writers import FileEach, JsonLines, repair, writer_for

SUMMARY = {"schema_version": 1, "run_id": "r", "stop_reason": None, "metrics": {}}

TEXTS = [
    "\ud83d",
    "a\udc97b",
    "\U0001f378",
    "e\u0301",
    "\u202etxt",
    "\r\n",
    "\x1b[2J",
    "\ufeffx",
    'q"uote, c;omma',
    "=1+1",
    "\0",
    "\u2028",
]


def row(index=0, output="done", **fields):
    result = ParallelTaskResult(
        name=f"task {index}/..", index=index, status=TaskStatus.SUCCEEDED, output=output, **fields
    )
    return result_row(result, "r")


def write(path, rows, **options):
    writer = writer_for(path, **{"overwrite": False, **options})
    for each in rows:
        writer.write(each)
    writer.close(SUMMARY)


def test_a_row_has_everything_and_its_schema_s_version():
    error = TaskError(type="E", message="m", kind="tool")
    log = (AttemptRecord(number=1, status=TaskStatus.FAILED, duration=1.0, error=error),)
    result = ParallelTaskResult(
        name="n", index=3, status=TaskStatus.FAILED, error=error, attempt_log=log, usage=Usage(prompt_tokens=5), metadata={"x": object}
    )  # fmt: skip
    made = result_row(result, "run 1")
    assert (made["schema_version"], made["run_id"], made["error"]["kind"]) == (1, "run 1", "tool")
    assert set(ParallelTaskResult.__dataclass_fields__) <= set(made)
    assert json.loads(json_text(made)) == made
    assert {"chat_history", "console"} & set(result_row(result, "r", transcripts=False)) == set()


def test_json_is_utf8_that_comes_back_as_it_was():
    """F26: halves of surrogate pairs, control characters, marks."""
    for text in TEXTS:
        written = json_text({"t": text}).decode("utf-8")
        assert json.loads(written) == {"t": text}
        assert len(written.splitlines()) == 1
    assert json_text("ä\U0001f378") == '"ä\U0001f378"'.encode()
    assert json.loads(json_text({"a": [float("nan"), float("inf"), 1.5]})) == {"a": ["nan", "inf", 1.5]}


def test_json_lines_are_there_as_soon_as_they_are_written(tmp_path):
    path = tmp_path / "r.jsonl"
    writer = writer_for(path, overwrite=False)
    assert not path.exists()
    for index, text in enumerate(TEXTS):
        writer.write(row(index, text))
        lines = path.read_bytes().split(b"\n")
        assert lines.pop() == b""
        assert [json.loads(line)["output"] for line in lines] == TEXTS[: index + 1]
    writer.close(SUMMARY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("before", "kept", "cut"),
    [
        (b"", b"", 0),
        (b'{"a": 1}\n', b'{"a": 1}\n', 0),
        (b'{"a": 1}\n{"b": 2}', b'{"a": 1}\n{"b": 2}\n', 0),
        (b'{"a": 1}\n{"b": "tor', b'{"a": 1}\n', 10),
        (b'{"b": "tor', b"", 10),
        (b'{"a": 1}\n{"b": "' + b"x" * 200_000, b'{"a": 1}\n', 200_007),
        (b'{"a": 1}\n{"b": "\xf0\x9f', b'{"a": 1}\n', 9),
    ],
)
def test_a_torn_line_is_cut_off_before_rows_are_added(tmp_path, before, kept, cut):
    path = tmp_path / "r.jsonl"
    path.write_bytes(before)
    writer = JsonLines(path)
    writer.write(row())
    writer.close(SUMMARY)
    assert writer.repaired == cut
    content = path.read_bytes()
    assert content.startswith(kept)
    assert json.loads(content[len(kept) :])["name"] == "task 0/.."
    assert repair(path) == 0


def test_a_json_document_is_put_in_its_place_whole(tmp_path):
    path = tmp_path / "r.json"
    writer = writer_for(path, overwrite=False)
    for index, text in enumerate(TEXTS):
        writer.write(row(index, text))
    assert not path.exists()
    writer.close(SUMMARY)
    data = json.loads(path.read_text("utf-8"))
    assert [each["output"] for each in data["results"]] == TEXTS
    assert {key: data[key] for key in SUMMARY} == SUMMARY
    assert os.listdir(tmp_path) == ["r.json"]
    write(tmp_path / "empty.json", [])
    assert json.loads((tmp_path / "empty.json").read_text())["results"] == []


def test_a_csv_table(tmp_path):
    write(tmp_path / "r.csv", [row(index, text) for index, text in enumerate(TEXTS[2:])] + [row(99, {"x": [1]})])
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == list(COLUMNS)
    assert [each["output"] for each in found] == [*TEXTS[2:], '{"x": [1]}']
    write(tmp_path / "half.csv", [row(0, "\ud83d")])
    assert "\\ud83d" in (tmp_path / "half.csv").read_text("utf-8")


def test_a_parquet_table(tmp_path):
    path = tmp_path / "r.parquet"
    write(path, [row(index, text, usage=Usage(prompt_tokens=3, cost=None)) for index, text in enumerate(TEXTS * 200)])
    frame = pd.read_parquet(path)
    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["output"][2:12]) == TEXTS[2:]
    assert (len(frame), int(frame["prompt_tokens"].sum()), frame["cost"].isna().all()) == (2400, 7200, True)
    assert os.listdir(tmp_path) == ["r.parquet"]
    write(tmp_path / "empty.parquet", [])
    assert len(pd.read_parquet(tmp_path / "empty.parquet")) == 0


def test_a_folder_has_one_file_for_each_task_under_a_safe_name(tmp_path):
    folder = tmp_path / "results"
    write(folder, [row(0), row(1)])
    assert sorted(os.listdir(folder)) == ["task_0_..-0.json", "task_1_..-1.json"]
    assert json.loads((folder / "task_1_..-1.json").read_text())["index"] == 1
    assert isinstance(writer_for(tmp_path / "new", overwrite=False), FileEach)


def test_nothing_is_replaced_unless_wanted(tmp_path):
    for name in ("r.json", "r.csv", "r.parquet"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(ConfigurationError, match="is there already; name a new file, or add --overwrite"):
            writer_for(tmp_path / name, overwrite=False)
        write(tmp_path / name, [row()], overwrite=True)
        assert (tmp_path / name).read_bytes() != b"mine"
    (tmp_path / "r.jsonl").write_text("mine")
    write(tmp_path / "r.jsonl", [row()], overwrite=True)
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1
    with pytest.raises(ConfigurationError, match="is not empty"):
        writer_for(tmp_path, overwrite=False)


@pytest.mark.parametrize(
    ("name", "told"), [("r.xlsx", "must end in .jsonl"), ("no/r.jsonl", "there is no folder"), ("file", "name it")]
)
def test_places_that_cannot_be_written_to_are_refused_at_once(tmp_path, name, told):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match=told):
        writer_for(tmp_path / name, overwrite=False)


def test_control_sequences_do_not_reach_the_terminal(capsys):
    """F26, F27: short previews, and no character that moves the cursor."""
    table = printer("table", sys.stdout)
    table.write(row(0, "\x1b[2J\r\n\x07 text" + "x" * 100_000))
    table.close(SUMMARY)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out
    assert len(out) < 2000


def test_a_large_run_s_table_shows_what_failed(capsys):
    table = printer("table", sys.stdout)
    error = TaskError(type="E", message="broke")
    for index in range(500):
        bad = ParallelTaskResult(name=f"t{index}", index=index, status=TaskStatus.FAILED, error=error)
        table.write(result_row(bad, "r") if index == 250 else row(index))
    table.close(SUMMARY)
    out = capsys.readouterr().out
    assert "t250" in out
    assert "500 results; 1 that did not succeed are shown" in out
    assert len(out.splitlines()) < 10

"""JSON lines, JSON lists, Parquet, folders, standard input and frames."""

import io
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ag2_parallel import ConfigurationError
from ag2_parallel.data.sources import row_source

ROWS = [{"id": "0123", "text": "ä\n\U0001f378"}, {"id": "2", "text": None}]


def values(source):
    return [dict(row.cells) for row in source]


def problems(source):
    return [f"{row.where}: {row.problem}" for row in source if row.problem]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_json_lines(tmp_path):
    text = "\ufeff" + "\r\n\n".join(json.dumps(row) for row in ROWS)
    assert values(row_source(write(tmp_path / "d.jsonl", text))) == ROWS
    assert (
        values(row_source(write(tmp_path / "d.ndjson", "\n".join(json.dumps(r, ensure_ascii=False) for r in ROWS))))
        == ROWS
    )


def test_bad_json_lines_are_named_and_the_others_are_read(tmp_path):
    lines = [b'{"id": 1}', b'{"id": 2', b"[3]", b'{"id": 4, "id": 5}', b'{"id": "\xff"}', b"", b'{"id": 6}', b'{"id":']
    source = row_source(write(tmp_path / "d.jsonl", b"\n".join(lines)))
    assert [row.cells["id"] for row in source if row.problem is None] == [1, 6]
    assert source.count() == len(list(source)) == 7
    told = problems(source)
    assert [text.partition(":")[0] for text in told] == [
        f"row {n} (line {m})" for n, m in ((2, 2), (3, 3), (4, 4), (5, 5), (7, 8))
    ]
    assert "no valid JSON" in told[0]
    assert "is a list and no JSON object" in told[1]
    assert "the key 'id' is there twice" in told[2]
    assert "byte 0xff at character 9 is not UTF-8" in told[3]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_list_is_read_object_by_object(tmp_path, indent):
    rows = [
        {"id": number, "text": "x" * (number * 997 % 70_000), "deep": {"a": [1, {"b": "]},{"}]}} for number in range(50)
    ]
    source = row_source(write(tmp_path / "d.json", json.dumps(rows, indent=indent)))
    assert values(source) == rows
    assert values(row_source(write(tmp_path / "none.json", " [ ] "))) == []


def test_a_large_json_list_is_not_read_whole(tmp_path):
    path = write(tmp_path / "d.json", '[{"id": 1}, {"id": 2}' + " " * 200_000 + "x broken")
    rows = iter(row_source(path))
    assert next(rows).cells == {"id": 1}
    assert next(rows).cells == {"id": 2}
    with pytest.raises(ConfigurationError, match=r"d\.json, line 1: no valid JSON: a comma"):
        next(rows)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"id": 1}', "is no JSON list of objects"),
        ('[{"id": 1},\n{"id": }]', "line 2: no valid JSON"),
        ('[{"id": 1},\n{"id": 2}', "line 2: no valid JSON: a comma or the end"),
        ('[{"id": 1, "id": 2}]', "'id' is there twice"),
        ("[", "no valid JSON"),
    ],
)
def test_a_broken_json_list_says_where(tmp_path, text, told):
    with pytest.raises(ConfigurationError, match=told):
        list(row_source(write(tmp_path / "d.json", text)))


def test_items_of_a_json_list_that_are_no_objects_are_named(tmp_path):
    source = row_source(write(tmp_path / "d.json", '[{"id": 1},\n 12345,\n "x",{"id": 2}]'))
    assert problems(source) == [
        "row 2 (line 2): is a int and no JSON object",
        "row 3 (line 3): is a str and no JSON object",
    ]


def test_parquet(tmp_path):
    rows = [{"id": f"{number:04}", "text": "t" * number, "score": number / 2} for number in range(1000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet", row_group_size=300)
    assert values(row_source(tmp_path / "d.parquet")) == rows
    with pytest.raises(ConfigurationError, match="cannot be read as Parquet"):
        list(row_source(write(tmp_path / "bad.parquet", b"PAR1 nothing")))


def test_a_folder_of_texts(tmp_path):
    (tmp_path / "ward").mkdir()
    (tmp_path / ".hidden").mkdir()
    write(tmp_path / "b.txt", "\ufeffzwei")
    write(tmp_path / "a.md", "eins\r\n")
    write(tmp_path / "ward" / "c.txt", b"caf\xe9")
    write(tmp_path / ".hidden" / "d.txt", "never")
    source = row_source(tmp_path)
    assert [(row.cells["path"], row.cells["name"], row.cells.get("text")) for row in source] == [
        ("a.md", "a", "eins\r\n"),
        ("b.txt", "b", "\ufeffzwei".removeprefix("\ufeff")),
        ("ward/c.txt", "c", None),
    ]
    assert problems(source) == ["row 3: ward/c.txt is no text: byte 0xe9 at position 4 is not utf-8"]
    assert values(row_source(tmp_path / "ward", "latin-1"))[0]["text"] == "café"


@pytest.mark.parametrize(
    "text",
    ["id,text\n1,a\n", '{"id": "1", "text": "a"}\n', '\ufeff [{"id": "1", "text": "a"}]'],
    ids=["csv", "jsonl", "json"],
)
def test_standard_input_is_told_by_its_first_character(text):
    stream = io.BufferedReader(io.BytesIO(text.encode()))
    source = row_source("-", standard_input=stream)
    assert not source.repeatable
    assert values(source) == [{"id": "1", "text": "a"}]


FRAME = {"id": ["0123", "2"], "count": [7, 8], "share": [0.5, None]}
FRAME_ROWS = [{"id": "0123", "count": 7, "share": 0.5}, {"id": "2", "count": 8, "share": None}]


@pytest.mark.parametrize(
    "rows",
    [pd.DataFrame(FRAME), pl.DataFrame(FRAME), pa.table(FRAME), FRAME_ROWS, iter(FRAME_ROWS)],
    ids=["pandas", "polars", "pyarrow", "list", "iterator"],
)
def test_rows_in_memory(rows):
    assert values(row_source(rows)) == FRAME_ROWS


def test_missing_values_of_pandas_are_none():
    frame = pd.DataFrame({"when": [pd.NaT, pd.Timestamp("2026-01-02")], "text": [pd.NA, "x"], 3: [float("nan"), 1.0]})
    assert values(row_source(frame))[0] == {"when": None, "text": None, "3": None}
    assert str(values(row_source(frame))[1]["when"]) == "2026-01-02 00:00:00"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("nowhere.csv", "there is no data file nowhere.csv"),
        ({"id": 1}, "one mapping and no list of rows"),
        (7, "a int has no rows"),
        (pl.LazyFrame(FRAME), "collect"),
    ],
)
def test_what_has_no_rows_is_refused(rows, told):
    with pytest.raises(ConfigurationError, match=told):
        row_source(rows)


def test_a_file_of_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"rows are read from \.csv"):
        row_source(write(tmp_path / "cases.xlsx", b""))

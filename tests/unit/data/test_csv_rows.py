"""F27, F40: CSV files as spreadsheets and programs write them."""

import csv
import hashlib

import pytest

from ag2_parallel import ConfigurationError
from ag2_parallel.data.sources import row_source


@pytest.fixture
def read(tmp_path):
    def read(content, name="data.csv", encoding=None):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        source = row_source(path, encoding)
        rows = list(source)
        assert source.count() == len(rows)
        return rows

    return read


def values(rows):
    return [dict(row.cells) for row in rows if row.problem is None]


EXPECTED = [{"id": "0123", "text": "no"}, {"id": "12:30", "text": "a, b; c"}]


@pytest.mark.parametrize(
    "content",
    [
        'id,text\n0123,no\n12:30,"a, b; c"\n',
        b'\xef\xbb\xbfid;text\r\n0123;no\r\n12:30;"a, b; c"\r\n',
        b'\xef\xbb\xbf"id"\t"text"\r\n0123\tno\r\n12:30\ta, b; c',
        "sep=|\r\nid|text\r\n0123|no\r\n\r\n12:30|a, b; c\r\n|\r\n",
        'id;text\n0123;no\n12:30;"a, b; c"\n'.encode("utf-16"),
        ' id , text \n0123,no\n12:30,"a, b; c"\n\n\n',
    ],
    ids=[
        "plain",
        "BOM, semicolons, CRLF",
        "BOM, tabs, quotes",
        "sep= line and blank rows",
        "UTF-16",
        "blanks in names",
    ],
)
def test_files_of_spreadsheets_are_read_alike(read, content):
    """F40."""
    rows = read(content)
    assert values(rows) == EXPECTED
    assert [row.number for row in rows] == [1, 2]


def test_quoted_line_breaks_stay_as_they_are_and_lines_are_counted(read):
    rows = read('id,text\r\n1,"one\r\ntwo ""quoted"""\r\n2,next\r\n')
    assert values(rows) == [{"id": "1", "text": 'one\r\ntwo "quoted"'}, {"id": "2", "text": "next"}]
    assert [row.line for row in rows] == [2, 4]


def test_a_cell_of_ten_megabytes_is_read_and_the_process_limit_is_untouched(read):
    """F27."""
    before = csv.field_size_limit()
    text = 'said "x", and\nmore; ' * 500_000
    quoted = text.replace('"', '""')
    rows = read(f'id,text\n1,"{quoted}"\n2,short\n')
    assert [hashlib.sha256(row.cells["text"].encode()).digest() for row in rows] == [
        hashlib.sha256(each.encode()).digest() for each in (text, "short")
    ]
    assert csv.field_size_limit() == before == 131_072


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"id,text\n1,a\n2\n3,c\n", "row 2 (line 3): has 1 cells, and there are 2 columns: id, text"),
        (b"id,text\n1,a\n2,b,c\n3,c\n", "row 2 (line 3): has 3 cells"),
        (b"id,text\n1,a\n2,caf\xe9\n3,c\n", "row 2 (line 3): column 'text': byte 0xe9 at character 4 is not UTF-8"),
        (b'id,text\n1,a\n2,"b" c\n3,c\n', "row 2 (line 3): is no sound CSV: ',' expected after '\"'"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_read(read, content, told):
    rows = read(content)
    assert [row.number for row in rows] == [1, 2, 3]
    bad = rows[1]
    assert f"{bad.where}: {bad.problem}".startswith(told)
    assert [row["id"] for row in values(rows)] == ["1", "3"]


def test_a_file_that_ends_inside_a_quoted_cell_says_so(read):
    rows = read('id,text\n1,a\n2,"never closed\n3,c\n')
    assert (rows[1].where, rows[1].problem) == (
        "row 2 (line 3)",
        "is no sound CSV: the file ends inside a quoted cell",
    )


def test_an_encoding_can_be_named(read):
    assert values(read(b"id,text\n1,caf\xe9\n", encoding="cp1252")) == [{"id": "1", "text": "café"}]


@pytest.mark.parametrize(
    ("content", "told"),
    [("", "is empty"), ("\n\n", "is empty"), ("id,text,id\n1,2,3\n", "two columns are called 'id'")],
)
def test_a_file_without_usable_column_names_is_refused(read, content, told):
    with pytest.raises(ConfigurationError, match=told):
        read(content)


def test_rows_are_read_one_by_one(tmp_path):
    path = tmp_path / "many.csv"
    with path.open("w") as file:
        file.write("id\n")
        file.writelines(f"{number}\n" for number in range(100_000))
    rows = iter(row_source(path))
    assert next(rows).cells == {"id": "0"}
    rows.close()


def test_rows_of_a_large_file_are_not_counted(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("id\n" + "1\n" * 100)
    assert row_source(path).count() == 100
    with path.open("ab") as file:
        file.truncate(2**25)
    assert row_source(path).count() is None

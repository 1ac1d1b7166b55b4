"""F26: text of any kind, and values of any kind, as bytes and back."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_cases import Opened, result

from ag2_parallel import TaskError, TaskStatus, Usage
from ag2_parallel.journal.checksums import checksum
from ag2_parallel.journal.codec import (
    bytes_text,
    decode_result,
    encode_result,
    pack,
    read_text,
    stored_text,
    text_bytes,
    unpack,
)
from ag2_parallel.redaction import masked_text

ODD = [
    "\ud83d",
    "a\udc97b",
    "\ud83d\udc97",
    "\U0001f378",
    "e\u0301",
    "\u202etxt",
    "\r\n",
    "\x1b[2J",
    "\ufeffx",
    "\0",
    "\u2028",
]
TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=30)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


STAMP = datetime(2026, 5, 4, 3, 2, 1, 7, tzinfo=UTC)


def unmasked(text):
    return text


def back(settled, keep="all", mask=unmasked):
    return decode_result(encode_result(settled, keep, mask))


@settings(deadline=None)
@given(value=PLAIN, text=TEXT)
def test_plain_data_comes_back_as_it_was(value, text):
    settled = result("t", output=value, summary=text, console=text, chat_history=({"content": text},), group=text)
    assert back(settled) == settled


@settings(deadline=None)
@given(text=TEXT)
def test_columns_hold_any_text(text):
    assert read_text(stored_text(text)) == text
    assert bytes_text(text_bytes(text)) == text


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_odd_text_survives_the_file(tmp_path, odd):
    whole = result("t", output={odd: odd}, summary=odd, console=odd, group=odd, metadata=[odd])
    whole = replace(whole, error=TaskError(type="E", message=odd), status=TaskStatus.FAILED)
    with Opened(tmp_path / "j.db") as run:
        run.attempt("t", fingerprint=odd)
        run.receipts("t").begin(odd)
        run.receipts("t").finish(odd, odd)
        run.settle(whole, odd)
        run.settle(result(odd, 1))
    with Opened(tmp_path / "j.db") as run:
        assert run.result("t") == whole
        assert run.receipts("t").begin(odd).value == odd
        assert [(task.name, task.fingerprint) for task in run.earlier()] == [("t", odd), (odd, "f")]


def test_a_prompt_of_ten_megabytes_survives_and_is_stored_once(tmp_path):
    long = "word \ud83d\0\u2028" * 1_100_000
    with Opened(tmp_path / "j.db") as run:
        run.settle(result("t", chat_history=[{"content": long}]))
    with Opened(tmp_path / "j.db") as run:
        assert run.result("t").chat_history[0]["content"] == long
    assert (tmp_path / "j.db").stat().st_size < len(text_bytes(long)) / 5


def test_what_json_cannot_hold():
    circle = {"own": 1}
    circle["again"] = circle
    deep = []
    for _ in range(1000):
        deep = [deep]
    output = {
        "circle": circle,
        "deep": deep,
        "set": {1},
        "bytes": b"x",
        5: math.inf,
        "nan": math.nan,
        "at": STAMP,
    }
    told = back(result("t", output=output)).output
    assert told["circle"] == {"own": 1, "again": "…"}
    assert (told["set"], told["bytes"], told["5"], told["at"]) == ([1], "b'x'", math.inf, str(STAMP))
    assert math.isnan(told["nan"])


class Breaking:
    def __str__(self):
        raise ValueError("no text with sk-live-1a2b3c4d in it")


@pytest.mark.parametrize("broken", [Breaking(), {"in": [Breaking()]}], ids=["str", "nested"])
def test_a_value_that_breaks_does_not_lose_the_result(broken):
    usage = Usage(prompt_tokens=1, calls=1)
    stored = result("t", output=broken, summary="kept", usage=usage, chat_history=({"content": "kept"},))
    told = back(stored, mask=masked_text)
    assert told.output.startswith("could not be stored: ValueError")
    assert "1a2b3c" not in told.output
    assert (told.summary, told.usage, told.chat_history, told.ok) == ("kept", usage, ({"content": "kept"},), True)


def test_a_number_too_long_to_be_read_from_decimal_digits_is_text():
    told = back(result("t", output=[10**5000, -(10**4000), 10**30])).output
    assert told == [hex(10**5000), hex(-(10**4000)), 10**30]


class Changing(dict):
    """Changed by code that still runs, while it is looked at."""

    def __init__(self, times):
        super().__init__(a=1)
        self.times = times

    def items(self):
        if self.times:
            self.times -= 1
            raise RuntimeError("dictionary changed size during iteration")
        return super().items()


def test_a_value_that_is_being_changed_is_looked_at_again():
    assert back(result("t", output=Changing(2))).output == {"a": 1}
    assert back(result("t", output=Changing(99))).output.startswith("could not be stored: RuntimeError")


def test_only_what_is_large_is_compressed():
    assert unpack(pack(b"x" * 100)) == b"x" * 100
    assert len(pack(b"x" * 20_000)) == 20_001
    assert len(pack(b"x" * 100_000)) < 1_000
    assert unpack(pack(b"x" * 100_000)) == b"x" * 100_000
    noise = bytes(hash((i, "noise")) & 0xFF for i in range(100_000))
    assert unpack(pack(noise)) == noise


def test_a_checksum_tells_values_and_their_places_apart():
    sums = [
        checksum("a", None),
        checksum(None, "a"),
        checksum(b"a", None),
        checksum("a"),
        checksum(1),
        checksum(1.0),
        checksum("1"),
    ]
    assert len(set(sums)) == len(sums)
    assert checksum(b"ab", b"c") != checksum(b"a", b"bc")


def test_stamps_keep_their_zone():
    assert back(result("t", started_at=STAMP, finished_at=None)).started_at == STAMP

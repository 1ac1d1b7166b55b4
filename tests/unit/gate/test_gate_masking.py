"""What is stored of a body has no key in it, and is still what it was."""

import json

import pytest

from ag2_parallel.gate.masking import masked_body
from ag2_parallel.redaction import Redactor

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def redactor():
    made = Redactor()
    made.learn({"api_key": "Zebra9QuiltMarble"})
    return made


def test_a_body_without_a_key_stays_the_same_bytes(redactor):
    for body in (b'{"a":  1}\r\n', b"", b"\xff\x00", b'data: {"a": 1}\n\ndata: [DONE]\n\n'):
        assert masked_body(body, redactor) is body


def test_json_stays_json_where_the_mark_ends_at_a_quote(redactor):
    said = 'curl -H "Authorization: Bearer abcdefgh-12345" x'
    body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
    content = json.loads(masked_body(body, redactor))["choices"][0]["message"]["content"]
    assert content == 'curl -H "Authorization: Bearer ***" x'


@pytest.mark.parametrize("key", [KEY, "Zebra9QuiltMarble"])
def test_events_stay_events(redactor, key):
    first = "data: " + json.dumps({"delta": f"its {key}"})
    body = f'event: x\n{first}\n\ndata: {{"a":1}}\n\ndata: [DONE]\n\n'.encode()
    masked = masked_body(body, redactor).decode()
    assert key not in masked
    assert [line for line in masked.split("\n") if line] == [
        "event: x",
        'data: {"delta": "its ***"}',
        'data: {"a": 1}',
        "data: [DONE]",
    ]


def test_other_text_is_masked_too(redactor):
    assert masked_body(f"wrong key {KEY}".encode(), redactor) == b"wrong key ***"


def test_text_of_another_encoding_is_masked_too(redactor):
    assert masked_body(b"caf\xe9 Zebra9QuiltMarble", redactor) == b"caf\xe9 ***"
    assert masked_body(b'{"a": "caf\xe9 Zebra9QuiltMarble"}', redactor).count(b"***") == 1


def test_a_key_in_pieces_is_found(redactor):
    pieces = ["its ", "Zebra9", "Quilt", "Marble", " now"]
    lines = ["data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces]
    masked = masked_body("\n\n".join([*lines, "data: [DONE]", ""]).encode(), redactor).decode()
    said = [json.loads(line[5:]) for line in masked.split("\n") if line.startswith("data: {")]
    assert [event["choices"][0]["delta"]["content"] for event in said] == ["its *** now", "", "", "", ""]
    assert masked.endswith("data: [DONE]\n\n")

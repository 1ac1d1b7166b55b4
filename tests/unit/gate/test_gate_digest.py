"""What a request is known again by."""

import json

import httpx
import pytest

from ag2_parallel.gate.digest import digest_of, foreign_content, request_content
from ag2_parallel.gate.request import ModelRequest

URL = "https://user:secret@api.example.com/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.5}


def digest(body=BODY, url=URL, **headers):
    headers = {"content-type": "application/json"} | headers
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return digest_of(request_content(ModelRequest.read(httpx.Request("POST", url, headers=headers, content=content))))


def calls(*names):
    """A conversation whose tool calls have these ids."""
    asked = [{"id": n, "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in names]
    answers = [{"role": "tool", "tool_call_id": name, "content": "1"} for name in names]
    return BODY | {"messages": [{"role": "assistant", "tool_calls": asked}, *answers]}


def test_it_is_the_same_whatever_changes_by_nature():
    turned = dict(reversed(BODY.items()))
    assert digest() == digest(turned)
    assert digest() == digest(json.dumps(BODY, indent=3).encode())
    assert digest() == digest(authorization="Bearer sk-1234567890", **{"user-agent": "x"})
    assert digest() == digest(url=URL.replace("user:secret", "other:one"))
    assert digest() == digest(url=f"{URL}?key=sk-1&api_key=2")
    assert digest(calls("a", "b")) == digest(calls("x", "y"))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"temperature": 0.6},
        {"stream": True},
        {"messages": [{"role": "user", "content": "hi "}]},
        {"messages": [{"role": "system", "content": "hi"}]},
        {"tools": []},
        {"id": "call_1"},
    ],
)
def test_it_is_another_where_anything_else_is_asked(change):
    assert digest(BODY | change) != digest()


def test_it_is_another_for_another_server_path_or_version():
    others = {URL.replace("api.", "eu."), URL.replace("/v1/", "/v2/"), f"{URL}?api-version=2"}
    assert len({digest(url=url) for url in others | {URL}}) == 4


def test_which_call_an_answer_belongs_to_counts():
    one, other = calls("a", "b"), calls("a", "b")
    other["messages"][1]["tool_call_id"], other["messages"][2]["tool_call_id"] = "b", "a"
    assert digest(one) != digest(other)


@pytest.mark.parametrize("text", ["\ud83d", "a\udc97b", "\x00", "\u2028", "\U0001f378"])
def test_text_of_any_kind_has_a_digest(text):
    """F26."""
    assert digest(BODY | {"user": text}) != digest()


@pytest.mark.parametrize("body", [b"", b"no json", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_has_one_too(body):
    assert len(digest(body)) == 64


def test_other_clients_calls_are_named_without_keys_and_addresses_in_memory():
    class Form:
        """Given as a response format."""

    def named(**more):
        return digest_of(foreign_content("m", "anthropic", {"messages": [], "form": Form, "tool": print} | more))

    assert named() == named(api_key="sk-1") == named(aws_secret_key=object())
    assert named(it=object()) == named(it=object())
    assert named() != named(max_tokens=3)

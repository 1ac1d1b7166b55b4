"""What model servers' error answers mean, whoever reads them: the gate or a task's result."""

import json
from types import SimpleNamespace

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_answers import ANSWERS, CONTEXT

from ag2_parallel.error_kinds import ERROR_KINDS, PERMANENT_KINDS
from ag2_parallel.frameworks.failures import task_error
from ag2_parallel.gate.error_body import with_reason
from ag2_parallel.gate.retry import answered
from ag2_parallel.provider_errors import is_transient, provider_error, was_filtered
from ag2_parallel.redaction import Redactor

REQUEST = httpx.Request("POST", "http://localhost/v1/chat/completions")


def as_bytes(body):
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def raised(status, body):
    """What the OpenAI SDK makes of an answer, read for a task's result."""
    client = openai.OpenAI(api_key="x")
    try:
        raise client._make_status_error_from_response(
            httpx.Response(
                status, request=REQUEST, content=as_bytes(body), headers={"content-type": "application/json"}
            )
        )
    except openai.APIStatusError as error:
        return task_error(error, Redactor())
    finally:
        client.close()


@pytest.mark.parametrize(("provider", "status", "body", "tokens"), CONTEXT)
def test_a_request_that_is_too_long_names_its_tokens(provider, status, body, tokens):
    read = provider_error(status, as_bytes(body))
    assert (read.kind, read.transient) == ("context_length", False)
    assert (read.tokens_asked, read.tokens_allowed) == tokens
    error = raised(status, body)
    assert error.kind == "context_length"
    if None not in tokens:
        assert error.message.endswith(f"({tokens[0]} tokens asked, {tokens[1]} tokens allowed)")


@pytest.mark.parametrize(("provider", "status", "body", "kind", "wait"), ANSWERS)
def test_answers_are_told_apart_and_both_readers_agree(provider, status, body, kind, wait):
    read = provider_error(status, as_bytes(body))
    assert (read.kind, read.retry_after) == (kind, wait)
    assert read == provider_error(status, body)
    assert read.transient is (kind in {"rate_limit", "provider", "timeout"})
    if status is None:
        return
    outcome = answered(status, body=as_bytes(body), should_retry=None, hint=None)
    error = raised(status, body)
    assert (outcome.kind, outcome.hint) == (error.kind, error.retry_after) == (kind, wait)
    assert error.retryable is (kind not in PERMANENT_KINDS)


@pytest.mark.parametrize(
    ("status", "should_retry", "kind", "transient"),
    [
        (429, "false", "rate_limit", False),
        (503, "false", "provider", False),
        (400, "true", "provider", True),
        (401, "true", "provider", True),
        (404, "maybe", "configuration", False),
        (408, None, "timeout", True),
        (409, None, "provider", True),
        (418, None, "provider", False),
        (529, None, "provider", True),
    ],
)
def test_a_servers_own_word_about_another_try_counts(status, should_retry, kind, transient):
    read = provider_error(status, b"", should_retry=should_retry)
    assert (read.kind, read.transient) == (kind, transient)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 1m12.5s.", 72.5),
        ("Please try again in 320ms. Visit", 0.32),
        ("please retry after 26 seconds", 26),
        ("try again in 2 minutes", 120),
        ("try again later", None),
    ],
)
def test_how_long_to_wait_may_stand_in_the_message(said, seconds):
    assert provider_error(429, {"error": {"message": said}}).retry_after == seconds


def test_an_empty_account_is_final_whatever_the_server_says_about_another_try():
    read = provider_error(429, {"error": {"code": "insufficient_quota"}}, should_retry="true")
    assert (read.kind, read.transient) == ("quota", False)


NESTED = st.recursive(
    st.none() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "x"]), inner),
    max_leaves=12,
)  # fmt: skip


@given(st.none() | st.integers(100, 999), NESTED | st.binary(max_size=200))
def test_any_body_has_a_kind_and_what_is_permanent_is_never_transient(status, body):
    read = provider_error(status, body)
    assert read.kind in ERROR_KINDS
    assert not (read.transient and read.kind in PERMANENT_KINDS)


@pytest.mark.parametrize("deep", ["[" * 60_000, '{"a":' * 12_000], ids=["lists", "objects"])
def test_a_body_that_is_too_deep_to_be_read_is_text(deep):
    assert provider_error(500, deep.encode()).kind == "provider"
    assert provider_error(500, {"error": {"message": deep}}).transient
    assert with_reason(deep.encode(), "why").endswith(b"(why)")


def test_which_failed_calls_may_go_well_the_next_time():
    assert is_transient("rate_limit", 429)
    assert is_transient("connection", None)
    assert is_transient("provider", 529)
    assert not is_transient("provider", 418)
    assert not is_transient("agent", None)
    assert not is_transient("quota", 429)


def test_an_answer_that_the_content_filter_emptied():
    def answer(reason, content=None, tool_calls=None):
        return {"choices": [{"finish_reason": reason, "message": {"content": content, "tool_calls": tool_calls}}]}

    assert was_filtered(answer("content_filter"))
    assert was_filtered(answer("content_filter: SAFETY", ""))
    assert not was_filtered(answer("content_filter", "half of it"))
    assert not was_filtered(answer("stop"))
    assert not was_filtered({"choices": []})
    assert not was_filtered(None)
    message = SimpleNamespace(content=None, tool_calls=None)
    assert was_filtered(SimpleNamespace(choices=[SimpleNamespace(finish_reason="content_filter", message=message)]))


class FromOtherSdksError(Exception):
    """An exception with the attributes of an SDK's."""

    def __init__(self, text, **attributes):
        super().__init__(text)
        vars(self).update(attributes)


def test_a_plain_http_error_is_read_by_its_answer():
    body = {"error": {"code": "insufficient_quota"}}
    response = httpx.Response(429, request=REQUEST, json=body)
    assert task_error(httpx.HTTPStatusError("429", request=REQUEST, response=response), Redactor()).kind == "quota"
    unread = httpx.Response(429, request=REQUEST, stream=httpx.ByteStream(as_bytes(body)))
    assert task_error(httpx.HTTPStatusError("429", request=REQUEST, response=unread), Redactor()).kind == "rate_limit"


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (FromOtherSdksError("model 'm' not found", error="model 'm' not found", status_code=404), "configuration", 404),
        (
            FromOtherSdksError(
                "429 RESOURCE_EXHAUSTED",
                code=429,
                status="RESOURCE_EXHAUSTED",
                details={"error": {"status": "RESOURCE_EXHAUSTED", "message": "limit 'Requests per day'"}},
                response=SimpleNamespace(headers={}),
            ),
            "rate_limit",
            429,
        ),
        (
            FromOtherSdksError(
                "An error occurred (ThrottlingException)",
                response={
                    "Error": {"Code": "ThrottlingException", "Message": "Too many requests"},
                    "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {"retry-after": "2"}},
                },
            ),
            "rate_limit",
            400,
        ),
        (
            FromOtherSdksError(
                "API error",
                status_code=400,
                body='{"message": "Invalid model: m", "type": "invalid_model"}',
                headers={},
            ),
            "configuration",
            400,
        ),
        (FromOtherSdksError("busy", http_status=503, json_body={"error": {"message": "busy"}}), "provider", 503),
    ],
    ids=["ollama", "google-genai", "botocore", "mistralai", "together"],
)
def test_the_exceptions_of_other_sdks(error, kind, status):
    read = task_error(error, Redactor())
    assert (read.kind, read.status_code) == (kind, status)

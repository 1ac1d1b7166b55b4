"""Kinds, statuses and texts of the errors that a task's code may raise."""

import asyncio
import email.utils
import signal
import threading
from datetime import UTC, datetime, timedelta

import httpx
import openai
import pytest

from ag2_parallel.error_kinds import ERROR_KINDS, PERMANENT_KINDS
from ag2_parallel.errors import ConfigurationError, NotSerializableError, SharedAgentError, TaskStopped
from ag2_parallel.frameworks.failures import InvalidAnswerError, task_error
from ag2_parallel.gate.failure import UnusableAnswerError
from ag2_parallel.ports import Draft
from ag2_parallel.redaction import Redactor

REQUEST = httpx.Request("POST", "http://localhost/v1/chat/completions")


def answered(cls, status, *, body=None, headers=None, message="no"):
    return cls(message, response=httpx.Response(status, request=REQUEST, headers=headers or {}), body=body)


def error_of(exc, draft=None, redactor=None):
    try:
        raise exc
    except BaseException as raised:
        return task_error(raised, redactor or Redactor(), draft)


class Kinded(Exception):
    kind = "budget"


class UncertainEffectError(Exception):
    """Told by its name."""


KINDS = [
    (answered(openai.AuthenticationError, 401), "authentication"),
    (answered(openai.PermissionDeniedError, 403), "authentication"),
    (answered(openai.RateLimitError, 429), "rate_limit"),
    (answered(openai.RateLimitError, 429, body={"code": "insufficient_quota"}), "quota"),
    (answered(openai.APIStatusError, 402), "quota"),
    (answered(openai.BadRequestError, 400, body={"code": "context_length_exceeded"}), "context_length"),
    (
        answered(openai.BadRequestError, 400, message="This model's maximum context length is 8 tokens"),
        "context_length",
    ),
    (answered(openai.BadRequestError, 400, body={"code": "content_filter"}), "content_filter"),
    (answered(openai.BadRequestError, 400, body={"error": {"code": "content_policy_violation"}}), "content_filter"),
    (answered(openai.BadRequestError, 400), "configuration"),
    (answered(openai.InternalServerError, 503), "provider"),
    (answered(openai.APIStatusError, 408), "timeout"),
    (openai.APITimeoutError(REQUEST), "timeout"),
    (openai.APIConnectionError(request=REQUEST), "connection"),
    (httpx.ReadTimeout("slow", request=REQUEST), "timeout"),
    (httpx.ConnectError("refused", request=REQUEST), "connection"),
    (httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(429, request=REQUEST)), "rate_limit"),
    (TimeoutError("late"), "timeout"),
    (ConnectionResetError("gone"), "connection"),
    (InvalidAnswerError("empty"), "invalid_answer"),
    (Kinded("spent"), "budget"),
    (UncertainEffectError("paid?"), "uncertain"),
    (SharedAgentError("shared"), "shared_agent"),
    (NotSerializableError("lock"), "not_serializable"),
    (ConfigurationError("wrong"), "configuration"),
    (TaskStopped("deadline"), "stopped"),
    (ValueError("x"), "agent"),
    (SystemExit(3), "agent"),
    (asyncio.CancelledError(), "agent"),
    (KeyboardInterrupt(), "agent"),
]


@pytest.mark.parametrize(
    ("exc", "kind"), KINDS, ids=lambda value: value if isinstance(value, str) else type(value).__name__
)
def test_the_kind_of_an_error(exc, kind):
    error = error_of(exc)
    assert error.kind == kind
    assert error.kind in ERROR_KINDS
    assert error.retryable is (kind not in PERMANENT_KINDS)
    assert error.type == type(exc).__name__
    assert type(exc).__name__ in error.traceback


def test_the_status_of_an_answer():
    error = error_of(answered(openai.RateLimitError, 429, headers={"retry-after": "3"}, message="slow down"))
    assert (error.status_code, error.retry_after, error.message) == (429, 3.0, "slow down")
    assert error_of(ValueError("x")).status_code is None


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after-ms": "1500"}, 1.5, 1.5),
        ({"Retry-After": "2.5"}, 2.5, 2.5),
        ({"retry-after": "-4"}, 0, 0),
        ({"retry-after": "1e99"}, 604_800, 604_800),
        ({"retry-after": email.utils.format_datetime(datetime.now(UTC) + timedelta(hours=1))}, 1, 3601),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
    ],
)
def test_every_form_of_retry_after(headers, low, high):
    assert low <= error_of(answered(openai.RateLimitError, 429, headers=headers)).retry_after <= high


@pytest.mark.parametrize("value", ["soon", "nan", ""])
def test_a_retry_after_that_says_nothing(value):
    assert error_of(answered(openai.RateLimitError, 429, headers={"retry-after": value})).retry_after is None


def test_what_ag2_makes_of_a_timeout():
    """AG2 turns the SDK's APITimeoutError into a builtin TimeoutError."""
    wrapped = TimeoutError("OpenAI API call timed out.")
    wrapped.__cause__ = openai.APITimeoutError(REQUEST)
    assert error_of(wrapped).kind == "timeout"


def test_the_root_cause_behind_a_rewrapped_error():
    try:
        try:
            raise answered(openai.RateLimitError, 429, headers={"retry-after": "7"})
        except openai.RateLimitError:
            raise ValueError("the agent's name is invalid")  # noqa: B904 - as AG2 does it
    except ValueError as raised:
        error = task_error(raised, Redactor())
    assert (error.type, error.kind, error.status_code, error.retry_after) == ("ValueError", "rate_limit", 429, 7.0)
    assert "RateLimitError" in error.traceback


def test_a_suppressed_context_is_no_cause():
    try:
        try:
            raise answered(openai.AuthenticationError, 401)
        except openai.AuthenticationError:
            raise ValueError("handled") from None
    except ValueError as raised:
        error = task_error(raised, Redactor())
    assert error.kind == "agent"


def test_a_circle_of_causes_ends():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert task_error(one, Redactor()).kind == "agent"


def test_the_telling_member_of_a_group():
    group = ExceptionGroup("all", [ValueError("x"), ExceptionGroup("some", [answered(openai.RateLimitError, 429)])])
    error = error_of(group)
    assert (error.type, error.kind, error.status_code) == ("RateLimitError", "rate_limit", 429)
    assert error_of(BaseExceptionGroup("all", [ValueError("x"), TaskStopped("idle")])).kind == "stopped"
    assert error_of(ExceptionGroup("all", [ValueError("x"), KeyError("y")])).type == "ValueError"


def test_a_connection_error_says_why():
    failed = openai.APIConnectionError(request=REQUEST)
    failed.__cause__ = httpx.ConnectError("[Errno 111] Connection refused")
    said = "Connection error. (http://localhost: ConnectError: [Errno 111] Connection refused)"
    assert error_of(failed).message == said


def test_a_client_without_a_key_is_a_mistake_of_the_configuration_and_not_tried_again():
    error = error_of(openai.OpenAIError("Missing credentials."))
    assert (error.kind, error.retryable) == ("configuration", False)
    assert error_of(openai.APIResponseValidationError(httpx.Response(200, request=REQUEST), None)).kind == "provider"


def test_a_missing_page_says_where_it_was_asked_for():
    root = httpx.Request("POST", "http://user:secret@localhost:11434/chat/completions?key=k")
    missing = openai.NotFoundError("Error code: 404", response=httpx.Response(404, request=root), body=None)
    assert error_of(missing).message == (
        "Error code: 404 (POST http://localhost:11434/chat/completions: check base_url, which ends in /v1 for most servers)"
    )
    there = answered(openai.NotFoundError, 404, message="Error code: 404")
    assert error_of(there).message == "Error code: 404 (POST http://localhost/v1/chat/completions)"
    unknown = answered(openai.NotFoundError, 404, message="Error code: 404 - model 'x' not found")
    assert error_of(unknown).message == "Error code: 404 - model 'x' not found"


def test_an_answer_that_is_none_is_described_though_the_sdk_says_nothing_of_it():
    failed = openai.APIConnectionError(request=REQUEST)
    failed.__cause__ = UnusableAnswerError("http://h answered 200 with something that is not a JSON object: '<html>'")
    error = error_of(failed)
    assert error.kind == "invalid_answer"
    assert "answered 200 with something that is not a JSON object: '<html>'" in error.message


def test_secrets_are_masked_and_locals_are_not_shown():
    redactor = Redactor()
    redactor.learn({"api_key": "plain-and-secret"})

    def broken(value):
        raise ValueError(f"key plain-and-secret, {len(value)}")

    try:
        broken("a-local-value")
    except ValueError as raised:
        error = task_error(raised, redactor)
    assert error.message == "key ***, 13"
    assert "plain-and-secret" not in error.traceback.replace('raise ValueError(f"key plain-and-secret', "")
    assert "a-local-value" not in error.traceback.replace('broken("a-local-value")', "")


def test_an_exception_that_cannot_say_what_it_is():
    class Broken(Exception):
        def __str__(self):
            raise SystemExit(1)

        __repr__ = __str__

    error = error_of(Broken())
    assert error.type == "Broken"
    assert "SystemExit" in error.message
    assert error.traceback


def test_a_long_traceback_is_cut_in_the_middle():
    error = error_of(ValueError("x" * 100_000))
    assert len(error.traceback) < 41_000
    assert "characters left out" in error.traceback


def test_an_exception_without_text():
    assert error_of(ValueError()).message == "ValueError"


def test_agent_and_tool_come_from_the_draft():
    error = error_of(ValueError("x"), Draft(agent="a", tool="search"))
    assert (error.kind, error.agent, error.tool) == ("tool", "a", "search")
    assert error_of(SystemExit(1), Draft(agent="a", tool="search")).kind == "agent"


def test_a_signal_handler_in_a_worker_gets_a_hint():
    """F32: code of the user's that sets a signal handler in a worker thread."""
    errors = []

    def work():
        try:
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        except ValueError as raised:
            errors.append(task_error(raised, Redactor()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "main thread" in errors[0].message
    assert "a process of its own" in errors[0].message

"""Errors of a model server from the wire to the task's result."""

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask, RetryPolicy
from ag2_parallel.testing import Fault, ModelServer, Reply

FAST = RetryPolicy(5, initial=0.001)
TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens."


def ask(server, *, retry=3, **entry):
    runner = ParallelAgentRunner(progress=False, model_retry=FAST, retry=RetryPolicy(retry, initial=0.001))
    return runner.run([ParallelTask("t", "x", {"llm_config": server.llm_config(**entry)})])["t"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.status(401), "authentication"),
        (Fault.status(404, message="The model `m` does not exist."), "configuration"),
        (Fault.status(402), "quota"),
        (Fault.status(429, code="insufficient_quota"), "quota"),
        (Fault.status(400, message="Your credit balance is too low to access the Anthropic API."), "quota"),
        (Fault.status(400, message=TOO_LONG), "context_length"),
        (Fault.status(500, message="Context size has been exceeded."), "context_length"),
        (Fault.status(400, code="content_filter"), "content_filter"),
    ],
)
def test_what_is_permanent_costs_one_request(fault, kind):
    """Neither the model's retries nor the task's repeat it."""
    with ModelServer(fault) as server:
        result = ask(server)
        assert (result.error.kind, result.error.retryable, result.attempts) == (kind, False, 1)
        assert server.ledger.count == 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.status(429), "rate_limit"),
        (Fault.status(529, type="overloaded_error", message="Overloaded"), "provider"),
        (Fault.status(503, message="Loading model"), "provider"),
        (Fault.status(504), "timeout"),
    ],
)
def test_what_passes_is_repeated_by_both(fault, kind):
    with ModelServer(fault) as server:
        result = ask(server, retry=2)
        assert (result.error.kind, result.error.retryable, result.attempts) == (kind, True, 2)
        assert server.ledger.count == 10


def test_a_request_that_is_too_long_names_its_tokens():
    with ModelServer(Fault.status(400, message=TOO_LONG)) as server:
        assert ask(server).error.message.endswith("(9031 tokens asked, 8192 tokens allowed)")


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_the_filter_left_empty_is_final_and_counted(stream):
    with ModelServer(Reply("", finish_reason="content_filter", usage=(5, 0))) as server:
        result = ask(server, stream=stream)
        assert (result.error.kind, result.attempts) == ("content_filter", 1)
        assert "content filter left nothing of it" in result.error.message
        assert (result.usage.calls, result.usage.prompt_tokens, server.ledger.count) == (1, 5, 1)


def test_an_empty_answer_that_was_not_filtered_is_an_invalid_one():
    with ModelServer("") as server:
        assert ask(server, retry=2).error.kind == "invalid_answer"
        assert server.ledger.count == 2


def test_a_wait_that_the_body_asks_for_is_kept_to():
    with ModelServer("fine") as server:
        server.fail_next(Fault.status(429, message="Rate limit reached. Please try again in 400ms."))
        result = ask(server, retry=1)
        assert result.ok
        assert 0.4 <= result.waited <= result.duration

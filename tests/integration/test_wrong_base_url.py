"""What a run says of a `base_url` that leads nowhere, or to something that is no model server."""

import pytest

from ag2_parallel import ParallelAgentRunner, ParallelTask
from ag2_parallel.testing import Fault, ModelServer


def error_at(server, base_url):
    entry = {**server.llm_config()["config_list"][0], "base_url": base_url}
    runner = ParallelAgentRunner(llm_config={"config_list": [entry]}, model_retry=1, progress=False)
    return runner.run([ParallelTask("case", "Hello")])["case"].error


def test_a_page_of_html_is_shown_with_what_to_check():
    with ModelServer(Fault.garbage("<html>Please log in</html>", "text/html")) as server:
        url, error = server.url, error_at(server, server.url)
    assert (error.kind, error.type) == ("invalid_answer", "UnusableAnswerError")
    assert error.message == (
        f"{url} answered 200 with something that is not a JSON object (text/html, 26 bytes): "
        "'<html>Please log in</html>'; check base_url, which ends in /v1 for most servers"
    )


@pytest.mark.parametrize("status", [404, 405])
def test_a_forgotten_v1_is_named(status):
    with ModelServer(Fault.status(status, message="Not Found")) as server:
        url, error = server.url, error_at(server, server.url)
    asked = f"POST {url}/chat/completions: check base_url, which ends in /v1 for most servers"
    assert (error.kind, error.message) == ("configuration", f"Error code: {status} - Not Found ({asked})")

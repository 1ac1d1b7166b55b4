"""A model server's life: its paths, its start and end, and the SDK that speaks to it."""

import subprocess
import sys

import httpx
import pytest

from ag2_parallel.testing import Fault, ModelServer, Reply

HELLO = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello you"}]


def ask(server, messages=HELLO, **fields):
    body = {"model": "m", "messages": messages, **fields}
    return httpx.post(f"{server.base_url}/chat/completions", json=body, trust_env=False, timeout=20)


def said(server, messages=HELLO, **fields):
    return ask(server, messages, **fields).raise_for_status().json()["choices"][0]["message"]["content"]


def test_it_lists_its_models_and_knows_no_other_path():
    with ModelServer(models=("a", "b")) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["a", "b"]
        missing = client.get("/nowhere")
        assert missing.status_code == 404
        assert "GET /nowhere" in missing.json()["error"]["message"]


@pytest.mark.parametrize("payload", [b"{not json", b"[1]"])
def test_a_body_that_is_no_json_object_is_refused(payload):
    with ModelServer() as server:
        url = f"{server.base_url}/chat/completions"
        response = httpx.post(url, content=payload, trust_env=False)
        (seen,) = server.ledger.requests
    assert response.status_code == 400
    assert (seen.status, seen.http_status, seen.body) == ("fault", 400, {})


def test_llm_config_is_fresh_each_time_and_takes_fields():
    with ModelServer(models=("tiny",)) as server:
        (entry,) = server.llm_config()["config_list"]
        assert entry == {"model": "tiny", "api_key": entry["api_key"], "base_url": server.base_url}
        assert entry["api_key"].startswith("sk-test-")
        entry["model"] = "changed"
        (other,) = server.llm_config(price=[0, 0], api_key="k")["config_list"]
    assert (other["model"], other["price"], other["api_key"]) == ("tiny", [0, 0], "k")


def test_it_starts_and_closes_any_number_of_times():
    server = ModelServer("x")
    with pytest.raises(RuntimeError, match="does not run"):
        _ = server.base_url
    assert "not running" in repr(server)
    assert server.start() is server.start()
    port = server.port
    assert server.base_url in repr(server)
    assert said(server) == "x"
    server.close()
    server.close()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = server.port
    with ModelServer("again", port=port) as other, pytest.raises(OSError, match="address"):
        ModelServer(port=other.port).start()
    with server:
        assert said(server) == "x"
        assert server.ledger.answered == 2


def test_a_process_that_forgets_to_close_it_still_exits():
    code = (
        "import threading, http.client, json\n"
        "from ag2_parallel.testing import ModelServer\n"
        "server = ModelServer(lambda request: threading.Event().wait()).start()\n"
        "connection = http.client.HTTPConnection('127.0.0.1', server.port)\n"
        "connection.request('POST', '/v1/chat/completions', json.dumps({'messages': []}))\n"
        "assert server.ledger.wait_for(lambda ledger: ledger.in_flight == 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=30, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_openai_sdk_understands_it():
    import openai

    with (
        ModelServer(Reply("hi there", usage=(4, 2))) as server,
        openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
    ):
        whole = client.chat.completions.create(model="m", messages=HELLO)
        assert (whole.choices[0].message.content, whole.usage.total_tokens) == ("hi there", 6)
        options = {"include_usage": True}
        chunks = list(client.chat.completions.create(model="m", messages=HELLO, stream=True, stream_options=options))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "hi there"
        assert chunks[-1].usage.total_tokens == 6
        server.fail_next(Fault.status(429, code="insufficient_quota"))
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="m", messages=HELLO)
        assert caught.value.code == "insufficient_quota"

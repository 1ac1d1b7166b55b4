"""Every fault reaches a client as what it is called, and is counted once."""

import json

import httpx
import pytest

from ag2_parallel.testing import Fault, ModelServer

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
BOTH = pytest.mark.parametrize("stream", [False, True])


@pytest.fixture
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.base_url, trust_env=False, timeout=20) as client:
        yield client


def ask(client, **fields):
    return client.post("/chat/completions", json={**BODY, **fields})


def outcome(server):
    """The last request, and that no other count moved."""
    seen = server.ledger.requests[-1]
    assert server.ledger.in_flight == 0
    return seen.status, seen.http_status


@BOTH
def test_a_status_has_the_protocol_s_error_body(server, client, stream):
    server.fail_next(Fault.status(429, retry_after="2"))
    response = ask(client, stream=stream)
    assert (response.status_code, response.headers["retry-after"]) == (429, "2")
    error = response.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("requests", "rate_limit_exceeded", None)
    assert outcome(server) == ("fault", 429)
    assert server.ledger.faults == 1


def test_a_status_says_what_it_is_told_to(server, client):
    server.fail_next(
        Fault.status(400, message="too long", code="context_length_exceeded", type="t", headers={"X-A": "b"})
    )
    response = ask(client)
    assert response.json()["error"] == {
        "message": "too long",
        "type": "t",
        "param": None,
        "code": "context_length_exceeded",
    }
    assert response.headers["x-a"] == "b"
    server.fail_next(Fault.status(503, retry_after=0.5))
    assert ask(client).headers["retry-after"] == "0.5"


def test_a_reset_is_a_reset(server, client):
    server.fail_next(Fault.reset())
    with pytest.raises(httpx.ReadError):
        ask(client)
    assert server.ledger.wait_for(lambda ledger: ledger.connections == 0)
    assert outcome(server) == ("fault", None)
    assert server.ledger.cut == 0
    assert ask(client).status_code == 200


def test_a_hang_sends_nothing_until_the_client_goes_away(server, client):
    server.fail_next(Fault.hang())
    with pytest.raises(httpx.ReadTimeout):
        client.post("/chat/completions", json=BODY, timeout=0.2)
    assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
    assert outcome(server) == ("cut", None)


def test_a_hang_may_end_by_itself(server, client):
    server.fail_next(Fault.hang(0.05))
    with pytest.raises(httpx.ReadError):
        ask(client)
    assert outcome(server) == ("fault", None)


@BOTH
def test_garbage_comes_with_status_200(server, client, stream):
    server.fail_next(Fault.garbage())
    response = ask(client, stream=stream)
    assert (response.status_code, response.text) == (200, "not json")
    server.fail_next(Fault.garbage("<html>", "text/html"))
    response = ask(client, stream=stream)
    assert (response.text, response.headers["content-type"]) == ("<html>", "text/html")
    assert outcome(server) == ("fault", 200)


@BOTH
def test_a_trickle_without_a_text_never_ends(server, client, stream):
    server.fail_next(Fault.trickle(0.001))
    with client.stream("POST", "/chat/completions", json={**BODY, "stream": stream}) as response:
        pieces = response.iter_bytes()
        received = b"".join(next(pieces) for _ in range(5))
    assert received.strip().startswith(b"data: {") if stream else not received.strip()
    assert server.ledger.wait_for(lambda ledger: ledger.cut == 1)
    assert outcome(server)[0] == "cut"


@BOTH
def test_a_trickle_with_a_text_becomes_whole(server, client, stream):
    server.fail_next(Fault.trickle(0.001, "slow but whole"))
    with client.stream("POST", "/chat/completions", json={**BODY, "stream": stream}) as response:
        pieces = list(response.iter_bytes())
    whole = b"".join(pieces).decode()
    assert len(pieces) > 1
    if stream:
        assert whole.endswith("data: [DONE]\n\n")
        chunks = [json.loads(line.removeprefix("data: ")) for line in whole.split("\n\n")[:-2]]
        assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "slow but whole"
    else:
        assert json.loads(whole)["choices"][0]["message"]["content"] == "slow but whole"
    assert outcome(server) == ("answered", 200)


@BOTH
def test_half_a_stream_breaks_off(server, client, stream):
    server.fail_next(Fault.half_stream("one two three four"))
    pieces = []
    asking = client.stream("POST", "/chat/completions", json={**BODY, "stream": stream})
    with asking as response, pytest.raises(httpx.RemoteProtocolError):
        pieces.extend(response.iter_bytes())
    received = b"".join(pieces)
    assert b"one" in received if stream else received.startswith(b"{")
    assert b"four" not in received
    assert server.ledger.wait_for(lambda ledger: ledger.connections == 0)
    assert outcome(server) == ("fault", 200)
    assert server.ledger.cut == 0


def test_a_fault_may_be_the_answer_itself(client, server):
    server.reply = Fault.status(401)
    assert ask(client).json()["error"]["code"] == "invalid_api_key"
    server.reply = lambda request: Fault.status(404)
    assert ask(client).status_code == 404


def test_faults_write_nothing_to_the_log(server, client, caplog):
    for fault in (Fault.reset(), Fault.half_stream(), Fault.hang(0.01)):
        server.fail_next(fault)
        with pytest.raises(httpx.TransportError):
            ask(client)
    server.close()
    assert [record.getMessage() for record in caplog.records if record.levelname in {"WARNING", "ERROR"}] == []
